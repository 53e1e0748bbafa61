"""A server process for C7: tables over PostgreSQL's protocol, without Spark, perhaps with a bug.

``python -m support.strict.server FOLDER [MUTANT]`` prints its port when it serves.
"""

from __future__ import annotations

import asyncio
import sys

from noonmark.adapter.database import Database
from noonmark.persist.client import Options
from noonmark.serve.start import start
from support.serve.reading import NoSpark
from support.strict.mutants import plant


async def serve(folder: str, mutant: str | None) -> None:
    plant(mutant)
    options = Options(notify_host=None)
    database = await Database.open(folder, session=NoSpark(), options=options)  # type: ignore[arg-type]
    server = await start(database, pg=("127.0.0.1", 0), http=("127.0.0.1", 0), clock=database.clock)
    print(server.pg_address[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
