// SPDX-License-Identifier: Apache-2.0
// How does the search work on pages that are read from a disk? Browsers start no Worker there, so a
// hidden frame takes its place. The theme would load such a script from another server.
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  // The theme's worker looks for this name in its parent.
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.importScripts = (...addresses) =>
        addresses.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve());
      inner.postMessage = (data) => this.deliver(data);
      this.ready = this.load(address);
    }

    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = address;
        script.onload = resolve;
        script.onerror = () => reject(new Error("cannot load " + address));
        this.frame.contentDocument.body.appendChild(script);
      });
    }

    // To the worker, once it listens.
    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    // From the worker.
    deliver(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
})();
