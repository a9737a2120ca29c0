//! What a person sends: text, links to files, files, and images.
//!
//! A link stays a link: the agent reads the file itself, within its rights. The content of a file that the editor sends, such as an
//! unsaved one, follows the text, as an attached file does in a terminal. Images and documents are checked by their first bytes, not
//! by the type that is declared.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};
use backstitch::Mission;
use backstitch::agent_file::BuiltAgent;
use backstitch::message::{MediaPart, MediaType, Modality, Part};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::error::{invalid, of_definition};

/// Maximum size of an image or a document, in bytes. Every provider accepts images of this size.
const MOST_MEDIA: usize = 5 * 1024 * 1024;

/// Maximum number of images and documents of a prompt.
const MOST_ITEMS: usize = 20;

/// Maximum size of all texts of a prompt, in bytes.
const MOST_TEXT: usize = 32 * 1024 * 1024;

/// A prompt of an editor, checked.
pub(crate) struct EditorPrompt {
    /// The text of the person, with links.
    pub(crate) text: String,
    /// Files that follow the text.
    files: Vec<String>,
    media: Vec<(Vec<u8>, MediaType, String)>,
}

impl EditorPrompt {
    /// Reads the blocks of a prompt.
    pub(crate) fn of_blocks(blocks: Vec<ContentBlock>) -> Result<Self, Error> {
        let mut prompt = Self { text: String::new(), files: Vec::new(), media: Vec::new() };
        for block in blocks {
            match block {
                ContentBlock::Text(text) => prompt.text.push_str(&text.text),
                ContentBlock::ResourceLink(link) => {
                    prompt.text.push_str(&format!("[@{}]({})", link.name, link.uri));
                }
                ContentBlock::Image(image) => {
                    let name = image.uri.unwrap_or_else(|| "image".to_owned());
                    prompt.add_media(&image.data, name)?;
                }
                ContentBlock::Resource(embedded) => match embedded.resource {
                    EmbeddedResourceResource::TextResourceContents(file) => {
                        let end = if file.text.ends_with('\n') { "" } else { "\n" };
                        let path = file.uri.replace(['"', '\n'], "");
                        prompt.text.push_str(&format!("[@{path}]"));
                        prompt.files.push(format!("<file path=\"{path}\">\n{}{end}</file>", file.text));
                    }
                    EmbeddedResourceResource::BlobResourceContents(file) => {
                        prompt.add_media(&file.blob, file.uri)?;
                    }
                    _ => return Err(invalid("a resource of the prompt is of an unknown kind")),
                },
                ContentBlock::Audio(_) => return Err(invalid("prompts with audio are not supported")),
                _ => return Err(invalid("a part of the prompt is of an unknown kind")),
            }
        }
        let length = prompt.text.len() + prompt.files.iter().map(String::len).sum::<usize>();
        if length > MOST_TEXT {
            return Err(invalid("the prompt has more than 32 MiB of text"));
        }
        if prompt.text.trim().is_empty() && prompt.files.is_empty() && prompt.media.is_empty() {
            return Err(invalid("the prompt is empty: write a question or a task"));
        }
        Ok(prompt)
    }

    fn add_media(&mut self, data: &str, name: String) -> Result<(), Error> {
        let refused = |reason: &str| invalid(format!("{name} cannot be attached: {reason}"));
        if self.media.len() == MOST_ITEMS {
            return Err(refused("a prompt has at most 20 images and documents"));
        }
        // Three bytes are four characters.
        if data.len() / 4 * 3 > MOST_MEDIA + 3 {
            return Err(refused("it is larger than 5 MiB"));
        }
        let bytes = BASE64_STANDARD.decode(data).map_err(|_| refused("it is not base64"))?;
        let kind = MediaType::of_bytes(&bytes);
        match kind.filter(|kind| matches!(kind.modality, Modality::Image | Modality::Document)) {
            Some(kind) => self.media.push((bytes, kind, name)),
            None => {
                return Err(refused("it is neither an image (PNG, JPEG, GIF, WebP) nor a PDF document"));
            }
        }
        Ok(())
    }

    /// Returns the command that the prompt is, with what follows it: text alone that begins with `/`.
    pub(crate) fn command(&self) -> Option<(&str, &str)> {
        let line = self.text.trim();
        let is_text = self.files.is_empty() && self.media.is_empty() && !line.contains('\n');
        let command = line.strip_prefix('/').filter(|_| is_text)?;
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some((name, rest.trim()))
    }

    /// Builds the mission for an agent.
    pub(crate) fn mission(self, agent: &BuiltAgent) -> Result<Mission, Error> {
        let text = agent.mission(&self.text).map_err(|error| of_definition(&error))?;
        let parts = std::iter::once(text).filter(|text| !text.is_empty()).chain(self.files).map(Part::text);
        let mission = Mission::new(parts.collect());
        Ok(self.media.into_iter().fold(mission, |mission, (bytes, kind, name)| {
            let (part, object) = MediaPart::held(kind.modality, bytes);
            mission.with_media((part.with_mime(kind.mime).with_hint(name), object))
        }))
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{
        BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink, TextResourceContents,
    };

    use super::*;

    fn prompt(blocks: Vec<ContentBlock>) -> Result<EditorPrompt, String> {
        EditorPrompt::of_blocks(blocks).map_err(|error| error.message)
    }

    #[test]
    fn links_stay_and_files_follow_the_text() {
        let file = TextResourceContents::new("fn hem() {}", "file:///shop/hem\"\n.rs");
        let blocks = vec![
            "Mend ".into(),
            ContentBlock::ResourceLink(ResourceLink::new("seam.rs", "file:///shop/seam.rs")),
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(
                file,
            ))),
        ];
        let prompt = prompt(blocks).unwrap();
        assert_eq!(prompt.text, "Mend [@seam.rs](file:///shop/seam.rs)[@file:///shop/hem.rs]");
        assert_eq!(prompt.files, ["<file path=\"file:///shop/hem.rs\">\nfn hem() {}\n</file>"]);
        assert_eq!(prompt.command(), None);
    }

    #[test]
    fn images_are_checked_by_their_bytes() {
        let data = BASE64_STANDARD.encode(b"GIF89a......");
        // The declared type is wrong.
        let image = ContentBlock::Image(ImageContent::new(data.clone(), "image/png"));
        assert_eq!(prompt(vec![image.clone()]).unwrap().media[0].1.mime, "image/gif");
        assert!(prompt(vec![image; 21]).is_err_and(|error| error.contains("at most 20")));
        let refused = |data: String| {
            let blob = BlobResourceContents::new(data, "file:///a.bin");
            let resource = EmbeddedResourceResource::BlobResourceContents(blob);
            prompt(vec![ContentBlock::Resource(EmbeddedResource::new(resource))]).err().unwrap()
        };
        assert!(refused(BASE64_STANDARD.encode(b"\x7fELF")).contains("neither an image"));
        assert!(refused("%".to_owned()).contains("not base64"));
        assert!(refused("A".repeat(8 * 1024 * 1024)).contains("larger than 5 MiB"));
        assert!(prompt(vec![" \n".into()]).is_err_and(|error| error.contains("empty")));
    }

    #[test]
    fn commands_are_single_lines_of_text() {
        let command = |text: &str| {
            let prompt = prompt(vec![text.into()]).unwrap();
            prompt.command().map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        };
        assert_eq!(command(" /rewind  2 "), Some(("rewind".to_owned(), "2".to_owned())));
        assert_eq!(command("/resume"), Some(("resume".to_owned(), String::new())));
        assert_eq!(command("/resume\nplease"), None);
        assert_eq!(command("resume"), None);
    }
}
