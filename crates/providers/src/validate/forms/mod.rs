//! The published form of each provider's request.
//!
//! Written by hand after the type definitions of the providers' SDKs, as of 2026-11-15: `openai` 6.49.0, `@anthropic-ai/sdk` 1.8.0
//! and `@google/genai` 2.32.0, all from npm. Of what is never sent only the names stand here. Fields that only answers have are not
//! among them.

pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod openai_chat;
pub(super) mod openai_responses;
