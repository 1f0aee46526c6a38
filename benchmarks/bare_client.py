"""The least a client can do: an aiohttp loop that sends N requests, C in flight, and prints wall and CPU seconds.

Usage: ``python benchmarks/bare_client.py PORT N C``.
"""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp


async def main(port: int, requests: int, concurrency: int) -> None:
    """Send the requests and print both times without start-up."""
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    numbers = iter(range(requests))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send() -> None:
            for number in numbers:
                message = {"role": "user", "content": f"say {number}"}
                async with session.post(url, json={"model": "m", "messages": [message], "temperature": 0}) as response:
                    (await response.json())["choices"][0]["message"]["content"]

        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(send() for _ in range(concurrency)))
        print(time.perf_counter() - started, time.process_time() - cpu)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
