//! Missions: the request that starts an evaluation.

use backstitch_core::message::{MediaPart, Part};
use backstitch_core::object::Object;

/// The request that starts an evaluation: text, and optionally media.
///
/// ```
/// use backstitch_core::message::Part;
/// use backstitch_runtime::Mission;
///
/// let words = Mission::from("Mend the coat.");
/// assert_eq!(words, Mission::new(vec![Part::text("Mend the coat.")]));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mission {
    pub(crate) parts: Vec<Part>,
    pub(crate) objects: Vec<Object>,
}

impl Mission {
    /// Creates a mission of these parts. Media among them has to be external, or in the store already.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, objects: Vec::new() }
    }

    /// Adds media with its bytes, which are stored with the mission. See [`MediaPart::held`].
    #[must_use]
    pub fn with_media(mut self, (media, object): (MediaPart, Object)) -> Self {
        self.parts.push(Part::Media(media));
        self.objects.push(object);
        self
    }

    /// Text and media, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// True if there is no part, or if every part is blank text.
    pub(crate) fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Text(part) => part.text.inline().is_some_and(|text| text.trim().is_empty()),
            Part::Media(_) => false,
        })
    }
}

impl From<&str> for Mission {
    fn from(text: &str) -> Self {
        Self::new(vec![Part::text(text)])
    }
}

impl From<String> for Mission {
    fn from(text: String) -> Self {
        Self::new(vec![Part::text(text)])
    }
}
