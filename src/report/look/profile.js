// SPDX-License-Identifier: Apache-2.0
// How is a timeline zoomed? By a wider picture in a box that scrolls; at first it is as wide as the
// box, and no narrower than its style sheet lets it be.
(() => {
  const box = document.getElementById('timeline');
  if (!box) return;
  const picture = box.querySelector('svg');
  let zoom = 1;
  function set(next, at) {
    next = Math.min(200, Math.max(1, next));
    const part = (box.scrollLeft + at) / (picture.clientWidth || 1);
    zoom = next;
    const view = picture.viewBox.baseVal;
    const whole = Math.max(box.clientWidth, parseFloat(getComputedStyle(picture).minWidth) || 0);
    picture.style.width = whole * zoom + 'px';
    picture.style.height = view.height * whole / view.width + 'px';
    picture.setAttribute('preserveAspectRatio', 'none');
    box.scrollLeft = part * picture.clientWidth - at;
    picture.dataset.zoom = zoom;
  }
  document.querySelectorAll('[data-zoom]').forEach(b => b.addEventListener('click', () =>
    set(b.dataset.zoom === '0' ? 1 : zoom * Number(b.dataset.zoom), box.clientWidth / 2)));
  box.addEventListener('wheel', e => {
    if (e.shiftKey) return;
    e.preventDefault();
    set(zoom * (e.deltaY < 0 ? 1.25 : 0.8), e.clientX - box.getBoundingClientRect().left);
  }, { passive: false });
  let from = null;
  box.addEventListener('pointerdown', e => {
    from = { x: e.clientX, left: box.scrollLeft };
    box.setPointerCapture(e.pointerId);
  });
  box.addEventListener('pointermove', e => {
    if (from) box.scrollLeft = from.left - (e.clientX - from.x);
  });
  box.addEventListener('pointerup', () => { from = null; });
})();
