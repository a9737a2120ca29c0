//! What `show` is asked to show: a session, a session at a point, or a call.

use std::str::FromStr;

use backstitch::code::ErrorCode;
use backstitch::view::{Call, JournalView};
use backstitch::{PointSpec, RuntimeError};

use super::calls::CallReport;
use crate::error::{CommandError, code_of};
use crate::open::place::OpenStore;

/// A call or a point, as the command line names it.
#[derive(Clone)]
pub(crate) enum ShownPoint {
    /// A call, by the beginning or the end of its id.
    Call(String),
    Point(PointSpec),
}

impl FromStr for ShownPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse().map_err(|error| format!("{error}"))? {
            PointSpec::After(call) if !text.contains(':') => Ok(Self::Call(call)),
            point => Ok(Self::Point(point)),
        }
    }
}

/// What to show.
pub(crate) enum ShownTarget {
    Session { view: Box<JournalView>, point: Option<PointSpec> },
    Call(Box<CallReport>),
}

impl ShownTarget {
    /// Finds what the two arguments of the command name. If there is only one, it may be a session, or a call or
    /// point of the latest session.
    pub(crate) async fn find(
        place: &OpenStore,
        name: Option<&str>,
        point: Option<&ShownPoint>,
    ) -> anyhow::Result<Self> {
        let Some(name) = name else { return Self::of_session(place, None, None).await };
        if point.is_some() {
            return Self::of_session(place, Some(name), point).await;
        }
        let alone = name.parse::<ShownPoint>().ok();
        match alone {
            None | Some(ShownPoint::Call(_) | ShownPoint::Point(PointSpec::Position(_))) => {
                let error = match place.session(Some(name)).await {
                    Ok(session) => {
                        let view = Box::new(place.view(session).await?);
                        return Ok(Self::Session { view, point: None });
                    }
                    Err(error) => error,
                };
                let Some(ShownPoint::Call(call)) = alone else { return Err(error) };
                if code_of(&error) != ErrorCode::SessionNotFound {
                    return Err(error);
                }
                let latest = place.session(None).await?;
                Self::call_below(place, place.view(latest).await?, &call).await
            }
            Some(point) => Self::of_session(place, None, Some(&point)).await,
        }
    }

    async fn of_session(
        place: &OpenStore,
        session: Option<&str>,
        point: Option<&ShownPoint>,
    ) -> anyhow::Result<Self> {
        let session = place.session(session).await?;
        let view = place.view(session).await?;
        match point {
            Some(ShownPoint::Call(call)) => {
                Ok(Self::Call(Box::new(CallReport::find(place, &view, call).await?)))
            }
            Some(ShownPoint::Point(point)) => {
                Ok(Self::Session { view: Box::new(view), point: Some(point.clone()) })
            }
            None => Ok(Self::Session { view: Box::new(view), point: None }),
        }
    }

    /// Finds a call of the latest session or of its sub-agents.
    async fn call_below(place: &OpenStore, latest: JournalView, call: &str) -> anyhow::Result<Self> {
        let mut views = vec![latest];
        while let Some(view) = views.pop() {
            match CallReport::find(place, &view, call).await {
                Ok(report) => return Ok(Self::Call(Box::new(report))),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
            for child in view.calls().filter_map(Call::session) {
                match place.view(child).await {
                    Ok(view) => views.push(view),
                    // The process crashed before the sub-agent had a journal.
                    Err(error) if code_of(&error) == ErrorCode::SessionNotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let message = format!("there is no session {call}, and no call {call} in the latest session");
        Err(CommandError::new(ErrorCode::SessionNotFound, message)
            .with_hint(
                "`backstitch ls` lists the sessions, `backstitch show SESSION CALL` names a session too",
            )
            .into())
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<RuntimeError>(), Some(RuntimeError::NoSuchPoint { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_from_points() {
        let is_call = |text: &str| matches!(text.parse(), Ok(ShownPoint::Call(_)));
        for call in ["9c41", "019b7892-aaaa", "123456789012"] {
            assert!(is_call(call), "{call}");
        }
        for point in ["12", "after:9c41", "before:9c41", "turn:2", "head", "start", "rescue:3"] {
            assert!(!is_call(point), "{point}");
            assert!(point.parse::<ShownPoint>().is_ok(), "{point}");
        }
        assert!("nothing".parse::<ShownPoint>().is_err());
    }
}
