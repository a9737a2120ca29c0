"""The job on LangGraph, with its checkpointer in SQLite."""

import operator
import sqlite3
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from job import DIRECTORY, MODE, model, names, say, sew


class State(TypedDict):
    answers: Annotated[list, operator.add]
    results: Annotated[list, operator.add]


graph = StateGraph(State)
graph.add_node("model", lambda state: {"answers": [model(state["results"])]})
graph.add_node("tool", lambda state: {"results": [sew(state["answers"][-1]["row"])]})
graph.add_edge(START, "model")
graph.add_conditional_edges("model", lambda state: END if state["answers"][-1]["row"] is None else "tool")
graph.add_edge("tool", "model")
connection = sqlite3.connect(f"{DIRECTORY}/store/store.db", check_same_thread=False)
compiled = graph.compile(checkpointer=SqliteSaver(connection))
for name in names():
    # `sync`: a step is stored before the next one begins.
    config = {"configurable": {"thread_id": name}, "recursion_limit": 100}
    begin = None if MODE == "resume" else {"answers": [], "results": []}
    compiled.invoke(begin, config, durability="sync")
    say("done")
connection.close()
