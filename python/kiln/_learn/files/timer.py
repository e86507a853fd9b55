# SPDX-License-Identifier: Apache-2.0
"""Lessons 1 and 2. seconds_per_call lies: it measures the launches and the first call. Make it
return the time that one call takes once everything is warm.

device.launch() starts the work and returns at once. device.synchronize() waits until all of it is
done. device.clock() is the time in seconds.
"""


def seconds_per_call(device, calls: int = 10) -> float:
    begin = device.clock()
    for _ in range(calls):
        device.launch()
    return (device.clock() - begin) / calls
