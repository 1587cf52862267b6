"""Stand-ins for a crawler: an evenly spaced schedule, in memory and against the real site."""

import asyncio
import time

import numpy as np
from demo.record import FetchRecord
from demo.site import page_url


def periodic_visits(rates, start, end, rng):
    """Times and pages of evenly spaced visits with random phases, after one visit to every page at `start`; ascending."""
    times, pages = [np.full(len(rates), float(start))], [np.arange(len(rates))]
    for page, rate in enumerate(rates):
        if rate > 0:
            own = np.arange(start + rng.uniform() / rate, end, 1 / rate)
            times.append(own)
            pages.append(np.full(len(own), page))
    times, pages = np.concatenate(times), np.concatenate(pages)
    order = np.argsort(times, kind="stable")
    return times[order], pages[order]


def record_of(world, times, pages):
    """What the site would have logged for these visits."""
    dead = times >= world.death[pages]
    versions = np.array([0 if gone else world.version(page, at) for page, at, gone in zip(pages, times, dead, strict=True)])
    return FetchRecord(times, pages, versions, np.where(dead, 404, 200))


async def fetch_all(address, visits, connections=4):
    """Fetch pages at their times (seconds after the site's start) over kept-alive connections; returns status and body of each."""
    queue, answers, writers = asyncio.Queue(), [], []

    async def work():
        streams = {}
        while True:
            page = await queue.get()
            url = page_url(page, address.ports)
            port = int(url.split(":")[2].split("/")[0])
            if port not in streams:
                streams[port] = await asyncio.open_connection("127.0.0.1", port)
                writers.append(streams[port][1])
            reader, writer = streams[port]
            writer.write(f"GET /page/{page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
            answers.append((page, int(head.split(" ")[1]), (await reader.readexactly(length)).decode()))
            queue.task_done()

    workers = [asyncio.create_task(work()) for _ in range(connections)]
    for at, page in visits:
        await asyncio.sleep(max(0.0, address.epoch + at - time.monotonic()))
        queue.put_nowait(int(page))
    await asyncio.wait_for(queue.join(), 20)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    for writer in writers:
        writer.close()
        await writer.wait_closed()
    return answers
