//! Random conversations with media everywhere: every request is valid for every provider.

use backstitch_core::message::{Arguments, MediaPart, MediaUrl, Modality, Part, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::rng::{Rng, Seed};
use backstitch_providers::{MediaMode, Provider, RefusedPart, RequestOptions, UnsupportedMediaPolicy, parse};
use serde_json::json;

use super::{FILES, PAINTERS, drawn, holding, media};
use crate::support::{Talk, target, whole_answer};

struct Mixer {
    rng: Rng,
    objects: Vec<Object>,
}

impl Mixer {
    fn below(&mut self, limit: usize) -> usize {
        self.rng.below(limit as u64) as usize
    }

    /// Media of any kind, with bytes, at an address, or lost.
    fn media(&mut self) -> Part {
        let modality = Modality::ALL[self.below(Modality::ALL.len())];
        match self.below(4) {
            0 => MediaPart::new(modality, MediaUrl::new("https://example.org/thing.png").unwrap()).into(),
            1 => MediaPart::new(modality, MediaUrl::blob(Object::blob(*b"lost").id())).into(),
            _ => {
                let (media, object) = media(FILES[self.below(FILES.len())]);
                self.objects.push(object);
                media.into()
            }
        }
    }

    fn parts(&mut self) -> Vec<Part> {
        let count = self.below(4);
        (0..count).map(|_| if self.below(3) == 0 { Part::text("words") } else { self.media() }).collect()
    }

    /// An answer with an image, with calls, or of media without a payload.
    fn answer(&mut self) -> PolicyAnswer {
        let answer = match self.below(4) {
            0 => {
                let maker = Provider::ALL[self.below(Provider::ALL.len())];
                parse(&whole_answer(maker).to_string(), &target(maker)).unwrap()
            }
            1 => {
                let parts = self.parts();
                let answer = PolicyAnswer { parts, ..PolicyAnswer::default() };
                (0..self.below(3)).fold(answer, |answer, _| answer.call("look", Arguments::none()))
            }
            _ => {
                let maker = PAINTERS[self.below(PAINTERS.len())];
                let bytes = FILES[self.below(FILES.len())];
                parse(&drawn(maker, bytes).to_string(), &target(maker)).unwrap()
            }
        };
        self.objects.extend(answer.objects.iter().cloned());
        answer
    }

    fn talk(&mut self) -> Talk {
        let mut talk = Talk::new().system("Be brief.");
        for _ in 0..=self.below(4) {
            talk = match self.below(3) {
                0 => talk.follow_up().user("And now?"),
                1 => {
                    let mut parts = self.parts();
                    parts.push(Part::text("Look."));
                    talk.say(RoleHint::User, parts)
                }
                _ => talk,
            };
            let answer = self.answer();
            let calls = answer.calls.len();
            talk = talk.answer(answer);
            for _ in 0..self.below(calls + 1) {
                talk = talk.result_with(json!({"seen": 1}), self.parts());
            }
        }
        talk
    }

    fn options(&mut self) -> RequestOptions {
        RequestOptions {
            unsupported: UnsupportedMediaPolicy::Describe,
            media: if self.below(2) == 0 { MediaMode::PreferUrl } else { MediaMode::PreferBytes },
            without_labels: self.below(3) == 0,
            refused: if self.below(4) == 0 { [RefusedPart::Media].into() } else { Default::default() },
            ..holding(&self.objects)
        }
    }
}

#[test]
fn every_request_is_valid() {
    for seed in 0..400 {
        let mut mixer = Mixer { rng: Seed::new(seed).rng(), objects: Vec::new() };
        let talk = mixer.talk();
        let options = mixer.options();
        for provider in Provider::ALL {
            talk.render(provider, &options);
        }
    }
}
