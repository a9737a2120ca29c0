//! All stores that the command knows: that of this directory, and those of all projects.

use std::path::PathBuf;

use backstitch::stores::{self, StoreAddress};

use super::place::{OpenStore, with_store_hint};
use super::trusted;
use crate::common::Common;
use crate::error::message_of;
use crate::terminal::{self, Role, Text};

/// A store, and the directory of its project if that is known.
pub(crate) struct ProjectStore {
    pub(crate) address: StoreAddress,
    pub(crate) project: Option<PathBuf>,
}

impl ProjectStore {
    /// Lists the store of this directory if it is trusted, and those of all projects.
    pub(crate) fn all(common: &Common) -> anyhow::Result<Vec<Self>> {
        let own = trusted::known_store(common, &std::env::current_dir()?);
        let mut found: Vec<Self> = stores::all()
            .map_err(with_store_hint)?
            .into_iter()
            .map(|known| Self {
                address: StoreAddress::File(known.store()),
                project: Some(known.project.path()),
            })
            .collect();
        let is_listed = |own: &StoreAddress| found.iter().any(|store| store.address.path() == own.path());
        if let Some(address) = own.filter(|own| !is_listed(own)) {
            found.insert(0, Self { address, project: None });
        }
        // One that was never used has no file yet.
        found.retain(|store| !store.address.is_missing());
        Ok(found)
    }

    /// Lists the store of this directory only.
    pub(crate) fn own(common: &Common) -> anyhow::Result<Vec<Self>> {
        let own = trusted::known_store(common, &std::env::current_dir()?);
        let mut all = Self::all(common)?;
        all.retain(|store| own.as_ref().is_some_and(|own| own.path() == store.address.path()));
        Ok(all)
    }

    /// Lists the stores of a command: all of them, or the one that other commands here use.
    pub(crate) fn of(common: &Common, all: bool) -> anyhow::Result<Vec<Self>> {
        match all {
            true => Self::all(common),
            false => Ok(vec![Self { address: OpenStore::address(common)?, project: None }]),
        }
    }

    /// Returns the options of commands about this store.
    pub(crate) fn options(&self, common: &Common) -> Common {
        Common { store: Some(self.address.clone()), ..common.clone() }
    }

    /// Returns the options for hints about sessions of this store, which name it unless a command here uses it anyway.
    pub(crate) fn hint_options(&self, common: &Common) -> Common {
        let here = std::env::current_dir().ok();
        let own = here.and_then(|here| trusted::known_store(common, &here));
        match own.is_some_and(|own| own.path() == self.address.path()) {
            true => common.clone(),
            false => self.options(common),
        }
    }

    /// Prints the heading of the store for people, where there may be several.
    pub(crate) fn print_heading(&self, common: &Common) {
        if common.json {
            return;
        }
        let title = match &self.project {
            Some(project) => project.display().to_string(),
            None => self.address.to_string(),
        };
        terminal::line(&Text::new().add(Role::Heading, title));
    }

    /// Reports that the store cannot be read, which does not hide the others.
    pub(crate) fn print_error(&self, common: &Common, error: &anyhow::Error) {
        let (store, error) = (self.address.to_string(), message_of(error));
        if common.json {
            println!(
                "{}",
                serde_json::json!({"v": 1, "store": store, "project": self.project, "error": error})
            );
        } else {
            println!("unreadable: {store}: {error}");
        }
    }
}
