//! Processes of servers that try to outlive them.

use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::processes::{Scene, WAYS, script};
use super::run_as_ordinary_user;

async fn start(scene: &Scene, sandbox: Sandbox, way: &str, then: &str) -> (ServerProcess, ServerStreams) {
    // That of an earlier server would let this one continue before its holders run.
    let _ = std::fs::remove_file(scene.seen());
    let spec = ProcessSpec::shell(script(&scene.hold.path, way, then)).sandbox(sandbox);
    let mark: CallId = fresh_ids(Arc::new(SystemClock::default())).unwrap().next();
    ServerProcess::start(spec, Some(scene.directory.path().to_owned()), mark).await.unwrap()
}

#[tokio::test]
async fn no_process_of_a_server_is_left() {
    for way in WAYS {
        let scene = Scene::new();
        for sandbox in scene.sandboxes() {
            let (server, mut streams) = start(&scene, sandbox.clone(), way, "echo ready; cat").await;
            scene.await_holders(1).await;
            streams.stdin.write_all(b"heard\n").await.unwrap();
            let mut answer = [0; 12];
            streams.stdout.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"ready\nheard\n");
            server.end().await.unwrap();
            assert!(!scene.hold.is_held(), "{way}: it was ended");

            let (server, _streams) = start(&scene, sandbox.clone(), way, "cat").await;
            scene.await_holders(1).await;
            drop(server);
            assert!(!scene.hold.is_held(), "{way}: it was dropped");

            let (mut server, _streams) = start(&scene, sandbox, way, "exit 0").await;
            scene.await_holders(1).await;
            server.wait_for_exit().await;
            // Nobody asks for it.
            scene.await_release(way).await;
        }
    }
}

#[test]
fn no_process_of_a_server_of_an_ordinary_user_is_left() {
    run_as_ordinary_user("escape::servers::no_process_of_a_server_is_left");
}
