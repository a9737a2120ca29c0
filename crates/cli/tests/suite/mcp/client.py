# The official Python SDK as a client of the server. The command of the server is in SERVER.
import asyncio, json, os
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command = json.loads(os.environ["SERVER"])

def text(result):
    return "".join(getattr(block, "text", "") for block in result.content)

def is_error(result):
    return bool(getattr(result, "is_error", getattr(result, "isError", False)))

async def main():
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "write_file" in names and "rewind" in names, names
        written = await session.call_tool("write_file", {"path": "note.txt", "text": "seven\n"})
        assert not is_error(written), written
        failed = await session.call_tool("mend", {"script": "echo x >> note.txt; exit 3"})
        assert is_error(failed), failed
        together = await asyncio.gather(*[session.call_tool("shell", {"command": f"echo {n}"}) for n in range(5)])
        for number, result in enumerate(together):
            assert str(number) in text(result), result
        points = json.loads(text(await session.call_tool("checkpoints", {})))
        assert len(points["checkpoints"]) == 7, points
        try:
            await asyncio.wait_for(session.call_tool("shell", {"command": "echo half > half.txt; sleep 600"}), 3)
            raise AssertionError("it was not cancelled")
        except asyncio.TimeoutError:
            pass
        after = await session.call_tool("read_file", {"path": "note.txt"})
        assert "seven" in text(after), after
    print("all as expected")

asyncio.run(main())
