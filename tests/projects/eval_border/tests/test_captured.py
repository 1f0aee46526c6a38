import asyncio
import logging

from pytest_lmeval import eval_task


@eval_task("async", data=[{"id": f"e{n}"} for n in range(3)])
async def test_async(row, lm, capsys, caplog):
    print("from", row["id"])
    logging.getLogger("shop").warning("logged")
    await asyncio.sleep(0.01)
    assert f"from {row['id']}\n" == capsys.readouterr().out
    assert ["logged"] == [record.message for record in caplog.records]


@eval_task("threads", threads=True, data=[{"id": f"e{n}"} for n in range(3)])
def test_threads(row, lm, capsys, caplog):
    print("from", row["id"])
    logging.getLogger("shop").warning("logged")
    assert f"from {row['id']}\n" == capsys.readouterr().out
    assert ["logged"] == [record.message for record in caplog.records]


@eval_task("limited", timeout=20)
def test_limited(capsys):
    print("mine")
    assert "mine\n" == capsys.readouterr().out


@eval_task("beside", data=[{"id": f"e{n}"} for n in range(9)])
async def test_beside(row):
    for _ in range(3):
        print("noise")
        logging.getLogger("shop").warning("noise")
        await asyncio.sleep(0.005)
    assert row
