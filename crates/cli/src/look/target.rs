//! What `show` is asked to show: a session, a session at a point, or a call.

use std::str::FromStr;

use backstitch::PointSpec;
use backstitch::host::SessionAt;
use backstitch::report::{CallReport, FileDetail};

use crate::error::{CommandError, ErrorCode, code_of};
use crate::open::OpenStore;

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
    Session(Box<SessionAt>),
    Call(Box<CallReport>),
}

impl ShownTarget {
    /// Finds what the two arguments of the command name. If there is only one, it may be a session, or a call or
    /// point of the latest session.
    pub(crate) async fn find(
        place: &OpenStore,
        name: Option<&str>,
        point: Option<&ShownPoint>,
        detail: FileDetail,
    ) -> anyhow::Result<Self> {
        let Some(name) = name.filter(|_| point.is_none()) else {
            return Self::of_session(place, name, point, detail).await;
        };
        let alone = name.parse::<ShownPoint>().ok();
        if matches!(&alone, Some(ShownPoint::Point(point)) if !matches!(point, PointSpec::Position(_))) {
            return Self::of_session(place, None, alone.as_ref(), detail).await;
        }
        let found = Self::of_session(place, Some(name), None, detail).await;
        match (found, alone) {
            (Err(error), Some(ShownPoint::Call(call))) if code_of(&error) == ErrorCode::SessionNotFound => {
                let latest = place.view(place.session(None).await?).await?;
                let found = place.runtime.call_below(latest, &call, detail).await?;
                Ok(Self::Call(Box::new(found.ok_or_else(|| missing(&call))?)))
            }
            (found, _) => found,
        }
    }

    async fn of_session(
        place: &OpenStore,
        session: Option<&str>,
        point: Option<&ShownPoint>,
        detail: FileDetail,
    ) -> anyhow::Result<Self> {
        let view = place.view(place.session(session).await?).await?;
        let point = match point {
            Some(ShownPoint::Call(call)) => {
                return Ok(Self::Call(Box::new(place.runtime.call(&view, call, detail).await?)));
            }
            Some(ShownPoint::Point(point)) => Some(point),
            None => None,
        };
        Ok(Self::Session(Box::new(place.runtime.session_at(&view, point).await?)))
    }
}

fn missing(call: &str) -> CommandError {
    let message = format!("there is no session {call}, and no call {call} in the latest session");
    CommandError::new(ErrorCode::SessionNotFound, message)
        .with_hint("`backstitch ls` lists the sessions, `backstitch show SESSION CALL` names a session too")
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
