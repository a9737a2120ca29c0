# The official Python SDK as a client of the server. The command of the server is in SERVER, or its URL and token are in
# SERVER_URL and SERVER_TOKEN.
import asyncio, json, os
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

def connection():
    url = os.environ.get("SERVER_URL")
    if url:
        headers = {"Authorization": "Bearer " + os.environ["SERVER_TOKEN"]}
        return streamable_http_client(url, http_client=create_mcp_http_client(headers=headers))
    command = json.loads(os.environ["SERVER"])
    return stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ)))

def text(result):
    return "".join(getattr(block, "text", "") for block in result.content)

def is_error(result):
    return bool(getattr(result, "is_error", getattr(result, "isError", False)))

async def main():
    async with connection() as (read, write), ClientSession(read, write) as session:
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
        while os.path.exists("half.txt"):
            await asyncio.sleep(0.05)
        after = await session.call_tool("read_file", {"path": "note.txt"})
        assert "seven" in text(after), after
        image = os.environ.get("IMAGE_TOOL")
        if image:
            kinds = [block.type for block in (await session.call_tool(image, {})).content]
            assert "image" in kinds, kinds
    print("all as expected")

asyncio.run(main())
