//! Removal of sessions.
//!
//! One transaction deletes everything of a session but the row that counts its claims: a fence is never given twice, even if a session with the same id is created
//! again. Objects that only the removed sessions needed are collected as garbage, and so are marks that no record names any more. Finally the server cleans its tables; copies of deleted rows stay in its log and in
//! backups for as long as those are kept.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{
    ClaimMode, Erasure, ErasureMode, Expiry, FenceToken, GcMode, IndexedSession, Owner, Removal,
    RemovalReport, RemovedSession, Retention, SessionClaim, SessionQuery, Store as _, StoreError, TimeRange,
};
use backstitch_core::time::Timestamp;
use uuid::Uuid;

use super::contents::PostgresContents;
use super::error::{Failure, chain_of};
use super::gc::{Collection, collect};
use super::link::Link;
use super::objects::{begin_removing, get_object, id_in};
use super::records::{decode, existing, numbered_sessions, texts};
use super::schema::get;
use super::server::parameters;
use super::store::PostgresStore;
use super::{changes, index, query};
use crate::chain::Checksum;
use crate::family::is_open;
use crate::garbage::Journals as _;
use crate::redaction::Contents as _;
use crate::references::{References, below, named_in_manifest};

impl PostgresStore {
    /// Claims sessions until there are no more of them: while some are claimed, another process may fork one.
    pub(super) async fn claim_all(
        &self,
        owner: &Owner,
        sessions: impl Fn() -> Result<Vec<SessionId>, StoreError>,
    ) -> Result<Vec<SessionClaim>, StoreError> {
        let mut claims: Vec<SessionClaim> = Vec::new();
        let claimed: Result<(), StoreError> = async {
            loop {
                let is_claimed = |session: &SessionId| claims.iter().any(|claim| claim.session == *session);
                let next = sessions()?.into_iter().find(|session| !is_claimed(session));
                let Some(next) = next else { return Ok(()) };
                let claim = self.claim(next, owner.clone(), ClaimMode::IfFree).await?;
                claims.push(claim);
            }
        }
        .await;
        if let Err(error) = claimed {
            self.release_all(claims).await;
            return Err(error);
        }
        Ok(claims)
    }

    /// The random ids of claims.
    fn ids_of(&self, claims: &[SessionClaim]) -> HashMap<SessionId, (FenceToken, Uuid)> {
        let id = |claim: &SessionClaim| {
            let held = self.shared().claims.get(claim.session, claim.fence)?;
            Some((claim.session, (claim.fence, held.claim)))
        };
        claims.iter().filter_map(id).collect()
    }

    /// Releases sessions. A failure leaves a claim that ends with the lease of this process.
    pub(super) async fn release_all(&self, claims: Vec<SessionClaim>) {
        for claim in claims {
            let _ = self.release(claim).await;
        }
    }

    pub(super) async fn remove_sessions(&self, removal: Removal) -> Result<RemovalReport, StoreError> {
        if removal.sessions.is_empty() {
            return Ok(RemovalReport::default());
        }
        if removal.mode == ErasureMode::DryRun {
            return self.in_thread(|link| rehearse(link, &removal));
        }
        self.shared().check_writable()?;
        let wanted = || self.in_thread(|link| removed_with(link, &removal));
        let ids = || Ok(wanted()?.into_iter().map(|one| one.session).collect());
        let claims = self.claim_all(&removal.owner, ids).await?;
        let held = self.ids_of(&claims);
        let removed = wanted().and_then(|removed| {
            // The youngest first: no fork or sub-agent outlives its parent.
            self.in_thread(|link| {
                let claim = |one: &RemovedSession| held.get(&one.session).copied();
                removed.iter().rev().try_for_each(|one| remove_one(link, one, claim(one), removal.at))?;
                Ok(removed)
            })
        });
        self.release_all(claims).await;
        let mut report = RemovalReport { sessions: removed?, ..RemovalReport::default() };
        report.sessions.iter().for_each(|one| self.shared().claims.forget_removed(one.session));
        self.in_thread(|link| {
            let none = HashSet::new();
            let collection = all_garbage(GcMode::Now, &none);
            let swept = collect(link, &collection).and_then(|collected| {
                report.objects = collected.freed.iter().map(|freed| freed.objects).sum();
                report.bytes = collected.freed_bytes();
                delete_unused_marks(link)
            });
            crash_point!("remove.collected");
            report.erasure = clean(link);
            if let Err(error) = swept {
                let reason = format!("unused objects could not be collected: {}", chain_of(&error));
                report.erasure = Erasure::Pending { reason };
            }
        });
        Ok(report)
    }

    /// Lists the sessions that a rule lets expire.
    pub(super) async fn expired_sessions(&self, expiry: Expiry) -> Result<Vec<SessionId>, StoreError> {
        let Some(before) = expiry.before else { return Ok(Vec::new()) };
        let mut wanted = SessionQuery::roots()
            .with_updated(TimeRange { since: None, until: Some(before) })
            .with_limit(usize::MAX);
        wanted.statuses.clone_from(&expiry.statuses);
        let found = self.run(move |shared| async move { query::page(&shared, &wanted).await }).await?;
        let free = found.sessions.iter().filter(|one| one.holder.is_none());
        let old: HashSet<SessionId> = free.map(IndexedSession::id).collect();
        self.in_thread(|link| {
            let shared = self.shared();
            let busy = |session| {
                let holder = link.wait(super::claims::holder(shared, session));
                Ok(holder?.is_some() || has_open_evaluation(link, session)?)
            };
            PostgresContents::new(link).origins()?.expirable(old, busy)
        })
    }
}

/// Lets the server remove deleted and replaced rows from its tables. Its log and its backups keep them for as long as they are kept themselves, which is not the store's to say.
pub(super) fn clean(link: &Link<'_>) -> Erasure {
    let tables =
        ["records", "objects", "object_parts", "inbox", "snapshots", "summaries", "tags", "changes", "queue"];
    let tables = tables.map(|table| format!("{{schema}}.{table}")).join(", ");
    // The server only warns of tables that it skips.
    let sql = "SELECT coalesce(bool_and(pg_catalog.pg_has_role(c.relowner, 'USAGE')), false) FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";
    let owned = link.query(sql, parameters![link.names().schema() => TEXT]);
    let owned = owned.and_then(|rows| rows.first().map_or(Ok(false), |row| get(row, 0)));
    if let Ok(false) = owned {
        let reason = "this user does not own the tables: let their owner execute VACUUM".to_owned();
        return Erasure::Pending { reason };
    }
    match owned.and_then(|_| link.batch(&link.names().fill(&format!("VACUUM {tables}")))) {
        Ok(()) => Erasure::Complete,
        Err(failure) => Erasure::Pending { reason: chain_of(&failure.into()) },
    }
}

/// A collection of everything that nothing needs, of any age.
fn all_garbage(mode: GcMode, without: &HashSet<SessionId>) -> Collection<'_> {
    Collection { retention: Retention::keep_all(), mode, without, age: Duration::ZERO }
}

fn rehearse(link: &Link<'_>, removal: &Removal) -> Result<RemovalReport, StoreError> {
    let removed = removed_with(link, removal)?;
    let all: HashSet<SessionId> = removed.iter().map(|one| one.session).collect();
    let freed = collect(link, &all_garbage(GcMode::DryRun, &all))?;
    let objects = freed.freed.iter().map(|freed| freed.objects).sum();
    let bytes = freed.freed_bytes();
    Ok(RemovalReport { sessions: removed, objects, bytes, erasure: Erasure::NotStarted })
}

fn has_open_evaluation(link: &Link<'_>, session: SessionId) -> Result<bool, Failure> {
    let mut records = Vec::new();
    texts(link, session, Position::START, usize::MAX, |position, text| {
        records.push(decode(session, position, text)?);
        Ok(())
    })?;
    Ok(is_open(&records))
}

/// Sessions to delete together, in the order of their creation.
fn removed_with(link: &Link<'_>, removal: &Removal) -> Result<Vec<RemovedSession>, StoreError> {
    let numbers = numbered_sessions(link)?;
    for session in &removal.sessions {
        // One whose removal was interrupted may be named again.
        let is_known = numbers.iter().any(|(_, known)| known == session);
        let sql = "SELECT 1 FROM {schema}.removals WHERE session = $1";
        if !is_known && link.query(sql, parameters![*session.as_uuid() => UUID])?.is_empty() {
            return Err(StoreError::NotFound { session: *session });
        }
    }
    let ends = |session| match has_open_evaluation(link, session) {
        Err(failure) if failure.is_outage() => Err(failure.into()),
        // A damaged sub-agent cannot be resumed.
        ends => Ok(ends.unwrap_or(false)),
    };
    let removed =
        PostgresContents::new(link).origins()?.removed_with(&removal.sessions, removal.forks, ends)?;
    let numbers = numbers.into_iter().filter(|(_, session)| removed.contains(session));
    let counted = numbers.map(|(_, session)| {
        let (_, head) = existing(link, session)?;
        Ok(RemovedSession { session, records: head.number() })
    });
    Ok(counted.collect::<Result<_, Failure>>()?)
}

/// Deletes everything of a session but its claims, if this claim still holds it: the lease may be over, or another program may have created a fork since the sessions were
/// claimed.
fn remove_one(
    link: &Link<'_>,
    one: &RemovedSession,
    held: Option<(FenceToken, Uuid)>,
    at: Timestamp,
) -> Result<(), StoreError> {
    link.transact(|| {
        let sql =
            "SELECT id, claim, owner FROM {schema}.sessions WHERE session = $1 AND created IS NOT NULL FOR UPDATE";
        let rows = link.query(sql, parameters![*one.session.as_uuid() => UUID])?;
        let Some(row) = rows.first() else { return Ok(()) };
        let number: i64 = get(row, 0)?;
        let (current, owner): (Option<Uuid>, Option<String>) = (get(row, 1)?, get(row, 2)?);
        if held.is_none_or(|(_, claim)| current != Some(claim)) {
            let fence = held.map_or(FenceToken(0), |(fence, _)| fence);
            let owner = owner.map(Owner::new);
            return Err(StoreError::Fenced { session: one.session, fence, owner }.into());
        }
        forget(link, number)?;
        for table in ["inbox", "records", "queue", "queue_keys", "deliveries"] {
            let sql = format!("DELETE FROM {{schema}}.{table} WHERE session = $1");
            link.query(&sql, parameters![number => INT8])?;
        }
        let start = Checksum::start(one.session);
        let sql = "UPDATE {schema}.sessions SET created = NULL, head = 0, chain = $2 WHERE id = $1";
        link.query(sql, parameters![number => INT8, start.as_bytes() => BYTEA])?;
        let sql = "INSERT INTO {schema}.removals (session, at, records) VALUES ($1, $2, $3)
            ON CONFLICT (session) DO UPDATE SET at = excluded.at, records = excluded.records";
        let values = parameters![
            *one.session.as_uuid() => UUID, at.to_string() => TEXT, one.records.cast_signed() => INT8
        ];
        link.query(sql, values)?;
        Ok::<_, Failure>(())
    })?;
    crash_point!("remove.unlisted");
    Ok(())
}

/// Deletes what repeats the journal of a session. The caller has begun a transaction.
pub(super) fn forget(link: &Link<'_>, number: i64) -> Result<(), Failure> {
    link.query("DELETE FROM {schema}.snapshots WHERE session = $1", parameters![number => INT8])?;
    // The reason of a failure may repeat what the session said.
    link.query("UPDATE {schema}.queue SET reason = NULL WHERE session = $1", parameters![number => INT8])?;
    changes::forget(link, number)?;
    index::forget(link, number)
}

/// Deletes marks of objects without content that nothing names any more.
fn delete_unused_marks(link: &Link<'_>) -> Result<(), StoreError> {
    let rows = link.query("SELECT id FROM {schema}.objects WHERE encoding NOT IN (0, 1)", &[])?;
    let mut unused: BTreeSet<ObjectId> =
        rows.iter().map(|row| id_in(get(row, 0)?)).collect::<Result<_, Failure>>()?;
    if unused.is_empty() {
        return Ok(());
    }
    let contents = PostgresContents::new(link);
    let mut manifests = BTreeSet::new();
    for of in contents.numbered_sessions()? {
        contents.texts_from(of, Position::START, &mut |_, text| {
            let named = References::in_text(text);
            manifests.extend(named.roots.iter().map(|root| root.manifest));
            let roots = named.roots.iter().flat_map(|root| [root.tree, root.manifest]);
            roots.chain(named.objects).for_each(|id| _ = unused.remove(&id));
            Ok(())
        })?;
    }
    for (id, kind, _) in contents.all_stored()? {
        let is_manifest = manifests.contains(&id);
        if !is_manifest && kind == ObjectKind::Blob {
            continue;
        }
        let Some(object) = get_object(link, id)? else { continue };
        let named = match is_manifest {
            true => named_in_manifest(object.bytes()).unwrap_or_default(),
            false => below(&object)?,
        };
        named.iter().for_each(|id| _ = unused.remove(id));
    }
    let ids: Vec<Vec<u8>> = unused.iter().map(|id| id.as_bytes().to_vec()).collect();
    link.transact(|| {
        begin_removing(link)?;
        let sql = "DELETE FROM {schema}.objects WHERE id = ANY ($1) AND encoding NOT IN (0, 1)";
        link.query(sql, parameters![ids => BYTEA_ARRAY]).map(drop)
    })?;
    Ok(())
}
