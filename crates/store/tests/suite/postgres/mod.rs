//! The store in PostgreSQL fulfils the guarantees of all ports, directly and through a pooler, on the version that is installed and on 18, and its own.

mod address;
mod claims;
mod crashes;
mod errors;
mod failover;
mod lost_answers;
mod moving;
mod objects;
mod opening;
mod queue;
mod redaction;
mod select;
mod support;

mod conformance {
    crate::conformance::store_conformance!(optional super::support::Temporary::new);
}

mod pooled {
    crate::conformance::store_conformance!(optional super::support::Temporary::pooled);
}

mod admin {
    use super::support::Temporary;
    use crate::conformance::admin::{store_admin_conformance, unsupported_operations};

    store_admin_conformance!(optional Temporary::new);

    #[test]
    fn all_but_backups_is_supported() {
        let (Some(one), Some(two)) = (Temporary::new(), Temporary::new()) else { return };
        assert_eq!(unsupported_operations(&one, &two), ["backup"]);
    }
}

mod pooled_queue {
    crate::conformance::queue::queue_conformance!(optional super::support::Temporary::pooled);
}

mod pooled_admin {
    crate::conformance::admin::store_admin_conformance!(optional super::support::Temporary::pooled);
}

mod on_18 {
    use super::support::Temporary;

    mod conformance {
        crate::conformance::store_conformance!(optional super::Temporary::on_18);
    }

    mod queue {
        crate::conformance::queue::queue_conformance!(optional super::Temporary::on_18);
    }

    mod admin {
        crate::conformance::admin::store_admin_conformance!(optional super::Temporary::on_18);
    }

    mod pooled {
        crate::conformance::store_conformance!(optional super::Temporary::pooled_on_18);
    }

    mod pooled_queue {
        crate::conformance::queue::queue_conformance!(optional super::Temporary::pooled_on_18);
    }

    mod pooled_admin {
        crate::conformance::admin::store_admin_conformance!(optional super::Temporary::pooled_on_18);
    }
}
