"""Delays steps of random tasks, so that tests meet sequences of events that are rare on a quiet machine.

    STEP_DELAYS=1 pytest tests/e2e

A task that has something to do waits up to LONGEST_S for its turn, as if the machine were busy with other
tasks alone. Of all tasks SLOW_TASKS are delayed at SLOW_STEPS of their steps, the others at OTHER_STEPS; the
delays of a task last DELAYS_S together. Tests with a clock of their own are left alone, and so are child
processes.

The environment variable is the seed of the first choices; later ones depend on the machine.
"""

import random
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

import pytest
import trio
from outcome import Outcome
from trio._core._run import Runner, SystemClock, Task

from support.patience import until

SLOW_TASKS, SLOW_STEPS, OTHER_STEPS = 0.12, 0.3, 0.0005
LONGEST_S, DELAYS_S = 0.5, 2.0


def delay_steps(seed: int) -> None:
    """Delay steps of tasks in all event loops of this process from now on."""
    chance = random.Random(seed)
    reschedule, all_blocked = Runner.reschedule, Runner.wait_all_tasks_blocked
    delayed: Counter[Runner] = Counter()
    left_s: WeakKeyDictionary[Task, float] = WeakKeyDictionary()
    slow: WeakKeyDictionary[Task, bool] = WeakKeyDictionary()

    def delay_s(runner: Runner, task: Task) -> float:
        nursery = task.parent_nursery
        is_ours = nursery not in {None, runner.system_nursery} and task is not runner.main_task
        if not is_ours or task.name == "<TrioToken.run_sync_soon task>":
            return 0
        if not isinstance(runner.clock, SystemClock) or runner.is_guest or runner.waiting_for_idle:
            return 0
        left = left_s.setdefault(task, DELAYS_S)
        is_slow = slow.setdefault(task, chance.random() < SLOW_TASKS)
        if chance.random() > (SLOW_STEPS if is_slow else OTHER_STEPS):
            return 0
        left_s[task] -= (now := min(left, chance.uniform(0.02, LONGEST_S)))
        return now

    def delaying(runner: Runner, task: Task, *next_send: Outcome[object]) -> None:
        reschedule(runner, task, *next_send)
        pause_s = delay_s(runner, task)
        if pause_s:
            assert runner.runq.pop() is task
            delayed[runner] += 1
            timer = threading.Timer(pause_s, wake, (runner, task))
            timer.daemon = True
            timer.start()

    def wake(runner: Runner, task: Task) -> None:
        with suppress(trio.RunFinishedError):
            runner.entry_queue.run_sync_soon(partial(go_on, runner, task))

    def go_on(runner: Runner, task: Task) -> None:
        delayed[runner] -= 1
        if not delayed[runner]:
            del delayed[runner]
        runner.runq.append(task)

    async def until_all_blocked(runner: Runner, cushion: float = 0.0) -> None:
        await until(lambda: not delayed[runner])
        await all_blocked(runner, cushion)

    patched = pytest.MonkeyPatch()
    patched.setattr(Runner, "reschedule", delaying)
    patched.setattr(Runner, "wait_all_tasks_blocked", until_all_blocked)
