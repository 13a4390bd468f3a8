import asyncio

from agent.llm.queued_model import QueuedModel
from agent.messages import Assistant, User
from agent.model import Request
from backend.protocol import IDLE, PERSON, SCHEDULED, Priority
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_caching import CachingModel
from fakes.patience import SECONDS


async def held(
    queue: LocalGpuQueue, order: list[str], chat: str, priority: Priority, free: asyncio.Event
) -> None:
    async with queue(chat, priority):
        order.append(chat)
        await free.wait()


async def steps() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_people_before_jobs_before_idle_work_and_else_as_they_came() -> None:
    queue, free = LocalGpuQueue(), asyncio.Event()
    order: list[str] = []
    asked: list[tuple[str, Priority]] = [
        ("first", IDLE),
        ("idle", IDLE),
        ("job", SCHEDULED),
        ("ann", PERSON),
        ("job 2", SCHEDULED),
        ("bob", PERSON),
    ]
    async with asyncio.TaskGroup() as group:
        for chat, priority in asked:
            group.create_task(held(queue, order, chat, priority, free))
            await steps()
        free.set()
    assert order == ["first", "ann", "bob", "job", "job 2", "idle"]


async def test_called_and_cancelled_at_once_the_queue_goes_on() -> None:
    for cancel_after in range(6):
        queue, free = LocalGpuQueue(), asyncio.Event()
        order: list[str] = []
        free.set()
        tasks = [asyncio.create_task(held(queue, order, name, PERSON, free)) for name in "abc"]
        for _ in range(cancel_after):
            await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[1].cancel()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait(tasks)
            async with queue("last", PERSON):
                pass


async def test_model_calls_of_two_chats_never_overlap() -> None:
    queue, running = LocalGpuQueue(), 0

    def answer(request: Request) -> Assistant:
        return Assistant("ok")

    def one_at_a_time(request: Request) -> None:
        nonlocal running
        running += 1
        assert running == 1

    model = CachingModel(answer, before=one_at_a_time)

    async def ask(chat: str) -> None:
        nonlocal running
        queued = QueuedModel(model, queue, chat)
        async for _ in queued.stream(Request((User(chat),))):
            pass
        running -= 1

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(ask(str(number)))
    assert len(model.requests) == 8
