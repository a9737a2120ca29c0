"""The job on Restate: a virtual object that a server drives over HTTP. The sockets of the server are in the directory."""

import asyncio
import http.client
import json
import os
import socket
import threading

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from job import DIRECTORY, MODE, model, names, say, sew

jobs = restate.VirtualObject("Job")


@jobs.handler()
async def run(ctx: restate.ObjectContext):
    results = []
    while (answer := await ctx.run_typed("model", model, results=results))["row"] is not None:
        results.append(await ctx.run_typed("tool", sew, row=answer["row"]))
    say("done")


def post(name, path, body):
    """Sends a request to a socket of the server."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(f"{DIRECTORY}/store/node/{name}.sock")
    connection.request("POST", path, body, {"content-type": "application/json"} if body else {})
    answer = connection.getresponse()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {answer.read()}")


def work():
    if MODE != "resume":
        post("admin", "/deployments", json.dumps({"uri": f"http://{os.environ['ADDRESS']}", "force": True}))
    for name in names():
        # One that a killed process left is continued by the server.
        if MODE != "resume":
            post("ingress", f"/Job/{name}/run/send", None)
    os._exit(0)


async def main():
    config = Config()
    config.bind, config.errorlog = [os.environ["ADDRESS"]], None
    server = asyncio.create_task(serve(restate.app([jobs]), config))
    while True:
        try:
            (await asyncio.open_connection(*os.environ["ADDRESS"].split(":")))[1].close()
            break
        except OSError:
            await asyncio.sleep(0.01)
    threading.Thread(target=work, daemon=True).start()
    await server


asyncio.run(main())
