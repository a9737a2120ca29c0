# The official Python SDK as a client: makes the calls in CALLS, and cancels the last one once the file BEGUN exists.
import asyncio, json, os
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command, calls, begun = json.loads(os.environ["SERVER"]), json.loads(os.environ["CALLS"]), os.environ["BEGUN"]

async def make(session, call, is_last):
    running = asyncio.create_task(session.call_tool(call["name"], call["arguments"]))
    if is_last and begun:
        while not os.path.exists(begun):
            await asyncio.sleep(0.02)
        running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        pass
    except Exception as error:
        # A tool that does not exist.
        assert "no tool" in str(error), error

async def main():
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for number, call in enumerate(calls):
            await make(session, call, number == len(calls) - 1)
        print("made all calls", flush=True)

asyncio.run(main())
