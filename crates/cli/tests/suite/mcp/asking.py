"""An MCP server whose tool asks the person what its arguments say, and returns the answer as JSON.

With `written`, the answer is also written to that file, and the tool waits until the file `go` beside it exists.
"""
import json
import os
import sys
import time

CAPABILITIES = {}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(question):
    """Asks, and waits for the answer."""
    send({"id": "question", "method": "elicitation/create", "params": question})
    while True:
        message = receive()
        if message.get("id") == "question" and "method" not in message:
            return message.get("result", message.get("error"))


def call(arguments):
    answers = [ask(question) for question in arguments["questions"]]
    value = json.dumps({"elicitation": CAPABILITIES.get("elicitation"), "answers": answers})
    if "written" in arguments:
        with open(arguments["written"], "w") as file:
            file.write(value)
        while not os.path.exists(os.path.join(os.path.dirname(arguments["written"]), "go")):
            time.sleep(0.02)
    return {"content": [{"type": "text", "text": value}]}


while True:
    request = receive()
    if "id" not in request:
        continue
    parameters = request.get("params") or {}
    if request["method"] == "initialize":
        CAPABILITIES = parameters["capabilities"]
        result = {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "forms", "version": "1"}
    elif request["method"] == "tools/list":
        tool = {"name": "ask", "description": "Asks.", "inputSchema": {"type": "object"}}
        result = {"tools": [{**tool, "annotations": {"readOnlyHint": True}}]}
    else:
        result = call(parameters["arguments"])
    send({"id": request["id"], "result": result})
