"""The job on DBOS, on SQLite."""

from dbos import DBOS, SetWorkflowID

from job import DIRECTORY, MODE, model, names, say, sew

DBOS(config={
    "name": "peers",
    "system_database_url": f"sqlite:///{DIRECTORY}/store/store.db",
    "application_version": "1",
    "run_admin_server": False,
    "log_level": "ERROR",
})
ask = DBOS.step(name="model")(model)
call = DBOS.step(name="tool")(sew)


@DBOS.workflow()
def job():
    results = []
    while (answer := ask(results))["row"] is not None:
        results.append(call(answer["row"]))
    return answer["text"]


# Workflows that a killed process left are continued by themselves.
DBOS.launch()
for name in names():
    if MODE == "resume":
        DBOS.retrieve_workflow(name).get_result()
    else:
        with SetWorkflowID(name):
            job()
    say("done")
DBOS.destroy()
