"""A whole life of a session over HTTP, by a client that openapi-python-client generated from docs/openapi.json.

Argument: a JSON file with `serve` (the command), `directory`, `go` (a file that lets the command of the agent end) and `written` (the file that it writes).
Every request and every answer is one of the generated client; events are read from its connection.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID

from backstitch_client import AuthenticatedClient
from backstitch_client.api.default import (
    delete_sessions_session,
    get_agents,
    get_approvals,
    get_metrics,
    get_query,
    get_runs,
    get_sessions,
    get_sessions_session,
    get_sessions_session_calls,
    get_sessions_session_diff,
    get_sessions_session_events,
    get_sessions_session_export,
    get_sessions_session_graph,
    get_sessions_session_records,
    get_sessions_session_state,
    get_sessions_session_transcript,
    get_stats,
    post_sessions,
    post_sessions_session_ask,
    post_sessions_session_decide,
    post_sessions_session_fork,
    post_sessions_session_name,
    post_sessions_session_redact,
    post_sessions_session_resume,
    post_sessions_session_rewind,
    post_sessions_session_tag,
    post_sessions_session_undo,
)
from backstitch_client.models import (
    ApprovalChoice,
    DecideBody,
    ForkBody,
    NameBody,
    NewSession,
    Problem,
    RedactBody,
    ResumeBody,
    StepBody,
    TagBody,
    TagBodySet,
    TextBody,
)

WORK = json.loads(Path(sys.argv[1]).read_text())
SECRET = "sk-leaked-1234567890"


class Server:
    """A process of the server, and the generated client of it."""

    def __init__(self):
        self.process = subprocess.Popen(
            WORK["serve"], cwd=WORK["directory"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self.process.stdout.readline().strip()
        if "/#token=" not in line:
            self.kill()
            raise AssertionError(f"the server did not start: {line!r}")
        base, token = line.split("/#token=")
        self.client = AuthenticatedClient(base_url=base, token=token, timeout=60, raise_on_unexpected_status=True)

    def kill(self):
        self.process.kill()
        self.process.wait()


def sent(route, *arguments, **options):
    """Sends a request that has to work."""
    answer = route.sync(*arguments, **options)
    assert answer is not None and not isinstance(answer, Problem), answer
    return answer


def refused(route, *arguments, **options):
    """Sends a request that is refused, and returns the code."""
    answer = route.sync(*arguments, **options)
    assert isinstance(answer, Problem), answer
    return answer.code


def wait(what, holds):
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


def settle(server, session, status):
    def holds():
        now = sent(get_sessions_session, session, client=server.client)
        return now.status == status and now.holder is None

    wait(f"{session} {status}", holds)
    return sent(get_sessions_session, session, client=server.client)


def events(server, session, last=None):
    """Reads the events of a session, as the generated client would request them."""
    request = get_sessions_session_events._get_kwargs(session)
    if last is not None:
        request["headers"] = {"last-event-id": str(last)}
    with server.client.get_httpx_client().stream(**request) as answer:
        assert answer.status_code == 200
        event = {}
        for line in answer.iter_lines():
            if line == "":
                if "data" in event:
                    yield event.get("event"), event.get("id"), json.loads(event["data"])
                event = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value


def main():
    server = Server()
    try:
        live(server)
    finally:
        server.kill()


def live(server):
    client = server.client
    assert [agent.name for agent in sent(get_agents, client=client).agents] == ["tailor"]
    new = NewSession(mission=f"Sew the hem with {SECRET}", agent="tailor")
    session = str(sent(post_sessions, client=client, body=new).session)

    # Everything is streamed until it waits for a person.
    last = -1
    for name, position, data in events(server, session):
        if position is not None:
            assert int(position) == last + 1, "records are dense"
            last = int(position)
        if data.get("kind") == "paused":
            break
    settle(server, session, "paused")
    waiting = sent(get_approvals, client=client).sessions
    call = waiting[0].decisions[0].call
    decision = DecideBody(calls=[call], decision=ApprovalChoice.APPROVE)
    sent(post_sessions_session_decide, session, client=client, body=decision)
    assert refused(post_sessions_session_decide, session, client=client, body=decision) != ""
    sent(post_sessions_session_resume, session, client=client, body=ResumeBody())
    written = Path(WORK["written"])
    wait("the command", written.exists)
    server.kill()

    # The next server finds it interrupted, and resumes it at the call. No record is missed.
    Path(WORK["go"]).write_text("")
    server.__init__()
    client = server.client
    assert sent(get_sessions_session, session, client=client).status == "interrupted"
    sent(post_sessions_session_resume, session, client=client, body=ResumeBody())
    for name, position, data in events(server, session, last):
        if position is not None:
            assert int(position) == last + 1, "no record is missed"
            last = int(position)
        if data.get("kind") == "evaluation_finished":
            break
    assert settle(server, session, "idle").outcome == "completed"
    assert written.read_text() == "whole\n"

    # Everything that is shown has the form of its description.
    assert len(sent(get_sessions_session_calls, session, client=client).calls) == 1
    assert sent(get_sessions_session_transcript, session, client=client).messages
    assert sent(get_sessions_session_records, session, client=client, all_=True).lines
    assert sent(get_sessions_session_state, session, client=client).slices is not None
    assert [file.path for file in sent(get_sessions_session_diff, session, client=client).files] == ["hem.txt"]
    assert sent(get_runs, client=client).runs
    assert sent(get_stats, client=client).to_dict()["tools"][0]["tool"] == "shell"
    assert sent(get_query, client=client, sql="SELECT count(*) FROM sessions").rows == [[1]]
    bundle = get_sessions_session_export.sync_detailed(session, client=client)
    assert bundle.status_code == 200 and len(bundle.content) > 1000
    assert "backstitch_runs_running" in get_metrics.sync_detailed(client=client).content.decode()

    # Names and tags.
    sent(post_sessions_session_name, session, client=client, body=NameBody(name="hem"))
    tagged = sent(post_sessions_session_tag, session, client=client, body=TagBody(set_=TagBodySet.from_dict({"team": "a"})))
    assert tagged.tags.to_dict() == {"team": "a"}
    listed = sent(get_sessions, client=client, tag=["team=a"]).sessions
    assert [str(row.session) for row in listed] == [session]
    assert str(sent(get_sessions_session, "hem", client=client).session) == session

    # Back and forth, a question, and a fork.
    sent(post_sessions_session_rewind, session, client=client, body=StepBody(to="start"))
    assert not written.exists()
    sent(post_sessions_session_undo, session, client=client, body=StepBody())
    assert written.read_text() == "whole\n"
    assert refused(post_sessions_session_rewind, session, client=client, body=StepBody(to="turn:99")) == "point_not_found"
    sent(post_sessions_session_ask, session, client=client, body=TextBody(text="Which colour?"))
    settle(server, session, "idle")
    fork = sent(post_sessions_session_fork, session, client=client, body=ForkBody(at=f"after:{call}"))
    assert isinstance(fork.session, UUID)
    assert len(sent(get_sessions_session_graph, session, client=client).forks) == 1

    # What is erased is gone.
    sent(post_sessions_session_redact, session, client=client, body=RedactBody(value=SECRET))
    shown = sent(get_sessions_session_records, session, client=client, all_=True)
    assert SECRET not in json.dumps(shown.to_dict())
    assert refused(delete_sessions_session, session, client=client) != ""
    sent(delete_sessions_session, session, client=client, with_forks=True)
    assert refused(get_sessions_session, session, client=client) == "session_not_found"
    print("lived")


main()
