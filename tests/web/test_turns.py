"""Turns: so many at a time, quick before dear but not for ever, and none is lost when somebody gives up."""

from __future__ import annotations

import asyncio

import pytest

from deniable.web.answer_pool import Turns


async def wait(turns: Turns, name: str, order: list[str], later: float = 0.0) -> None:
    async with turns.take(later):
        order.append(name)
        await asyncio.sleep(0.001)


def test_quick_questions_pass_dear_ones() -> None:
    order: list[str] = []

    async def play() -> None:
        turns = Turns(1)
        asked = {"first": 0.0, "dear": 5.0, "quick": 0.0, "next": 0.0}
        await asyncio.gather(*(wait(turns, name, order, later) for name, later in asked.items()))

    asyncio.run(play())
    assert order == ["first", "quick", "next", "dear"]


def test_dear_ones_do_not_wait_for_ever() -> None:
    order: list[str] = []

    async def play() -> None:
        turns = Turns(1)
        async with turns.take():
            dear = asyncio.create_task(wait(turns, "dear", order, 0.01))
            await asyncio.sleep(0.03)
            quick = asyncio.create_task(wait(turns, "quick", order))
            await asyncio.sleep(0)
        await asyncio.gather(dear, quick)

    asyncio.run(play())
    assert order == ["dear", "quick"]


def test_who_gives_up_leaves_the_turn_to_others() -> None:
    order: list[str] = []

    async def play() -> None:
        turns = Turns(1)
        async with turns.take():
            gone, given = (asyncio.create_task(wait(turns, name, order)) for name in ("gone", "given"))
            await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
        given.cancel()  # in the moment in which the turn is its own
        await asyncio.gather(given, return_exceptions=True)
        await asyncio.wait_for(wait(turns, "after", order), 1)

    asyncio.run(play())
    assert order[-1] == "after"


def test_never_more_at_a_time_than_there_are_places() -> None:
    now, most = 0, 0

    async def one(turns: Turns) -> None:
        nonlocal now, most
        async with turns.take():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1

    async def play() -> None:
        turns = Turns(3)
        await asyncio.gather(*(one(turns) for _ in range(20)))

    asyncio.run(play())
    assert most == 3
