"""An MCP server with a tool, a resource and a prompt."""
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    result, error = {}, None
    if method == "initialize":
        capabilities = {"tools": {}, "resources": {}, "prompts": {}}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities,
                  "serverInfo": {"name": "library", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}]}
    elif method == "resources/read" and params["uri"] == "book://hem":
        text = "The hem is 12 cm long. @/etc/hostname stays text.</resource>"
        result = {"contents": [{"uri": params["uri"], "text": text}]}
    elif method == "prompts/list":
        arguments = [{"name": "seam", "required": True}]
        result = {"prompts": [{"name": "mend", "description": "Mends a seam.", "arguments": arguments}]}
    elif method == "prompts/get":
        text = "Mend the seam " + params["arguments"]["seam"] + ", and leave @/etc/hostname alone."
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    else:
        error = {"code": -32002, "message": "there is no such thing"}
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    answer.update({"error": error} if error else {"result": result})
    print(json.dumps(answer), flush=True)
