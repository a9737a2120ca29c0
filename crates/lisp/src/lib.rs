//! A sandboxed, suspendable subset of Clojure for agents. No IO.
