//! The SQLite store fulfils the port's guarantees and its own.

mod agent;
mod backup;
mod bundle;
mod child;
mod claims;
mod creation;
mod damage;
mod fixtures;
mod full;
mod garbage;
mod garbage_model;
mod group;
mod hammer;
mod marks;
mod opening;
mod queue;
mod redaction;
mod remains;
mod removal;
mod replaced;
mod salvage;
mod select;
pub(crate) mod support;
mod torn;
mod view;

mod conformance {
    crate::conformance::store_conformance!(super::support::Temporary::new);
}

mod admin {
    use backstitch_core::ports::{StoreAdmin, StoreError};
    use backstitch_store::MemoryStore;
    use backstitch_testkit::{block_on, sample};

    use super::support::{Temporary, write};
    use crate::conformance::admin::{store_admin_conformance, unsupported_operations};

    store_admin_conformance!(Temporary::new);

    #[test]
    fn everything_is_supported() {
        assert_eq!(unsupported_operations(&Temporary::new(), &Temporary::new()), Vec::<&str>::new());
    }

    #[test]
    fn a_session_is_not_copied_to_a_store_of_another_kind() {
        let (store, journal) = (Temporary::new(), sample::journal(3, 2));
        write(&*store, &journal);
        let target = MemoryStore::new();
        let admin: &dyn StoreAdmin = &*store;
        let error = block_on(admin.copy_session(journal.session, &target, &mut |_| {})).unwrap_err();
        assert_eq!(error.to_string(), "a store in memory does not support sessions of other stores");
        assert!(error.hint().is_some());
        assert!(matches!(
            target.unsupported("x"),
            StoreError::Unsupported { store: "a store in memory", operation: "x", .. }
        ));
    }
}
