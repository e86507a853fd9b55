# SPDX-License-Identifier: Apache-2.0
"""What do ops meet on the engine that forget, print anything, throw or run out of memory? From
Python, as a user does."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch

import kiln


@pytest.fixture(scope="module")
def forgetful(command, sources):
    return kiln.load(sources / "forgetful.cu")


@pytest.mark.parametrize("name", ["shared_", "local_"])
def test_memory_that_nobody_wrote_is_not_a_number(forgetful, monkeypatch, name):
    out = torch.zeros(128)
    getattr(forgetful, name)(out)
    assert torch.isnan(out).all()
    monkeypatch.setenv("KILN_ENGINE_FILL", "zero")
    getattr(forgetful, name)(out)
    assert (out == 0).all()


def test_printf_writes_nothing_and_prints_what_it_knows(forgetful, capfd):
    out = torch.zeros(2)
    forgetful.print_(out)
    printed = capfd.readouterr().out
    assert printed == "1 %n||1.50 %k\n"
    assert out.tolist() == [2, 42]


def test_without_memory_the_op_raises_and_the_next_one_runs(forgetful, monkeypatch):
    out = torch.zeros(1024)
    monkeypatch.setenv("KILN_ENGINE_MEMORY_MB", "1")
    with pytest.raises(RuntimeError, match="Out of memory"):
        forgetful.much_(out)
    monkeypatch.delenv("KILN_ENGINE_MEMORY_MB")
    forgetful.much_(out)
    assert (out == 512).all()


def in_child(ops, queue):
    out = torch.zeros(1024)
    ops.much_(out)
    queue.put(bool((out == 512).all()))


def test_children_of_a_fork_call_ops_while_another_thread_does(forgetful):
    stop = threading.Event()

    def call() -> None:
        out = torch.zeros(1024)
        while not stop.is_set():
            forgetful.much_(out)

    other = threading.Thread(target=call)
    other.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(5):
            queue = context.SimpleQueue()
            child = context.Process(target=in_child, args=(forgetful, queue))
            child.start()
            child.join(120)
            hangs = child.is_alive()
            child.kill()
            assert not hangs
            assert child.exitcode == 0
            assert queue.get()
    finally:
        stop.set()
        other.join()
