//! The part of the PVE client that execution uses, as a trait so that tests can script it.

use futures::FutureExt;
use futures::future::BoxFuture;
use proxops_model::kind::{GuestType, Method};
use proxops_pve::{
    Answer, Client, GuestConfig, GuestStatus, Node, ParamText, PveError, ReplicationJob, TaskEnd, TaskQuery,
    TaskRow, Upid, Volume,
};
use std::time::Duration;

/// Reads, writes and waits of one cluster. [`Client`] is the real one and documents each call.
pub trait Wire: Send + Sync {
    /// One logical write.
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        params: &'a [(String, ParamText)],
    ) -> BoxFuture<'a, Result<Answer, PveError>>;

    /// Waits for the end of a task.
    fn wait_task<'a>(&'a self, upid: &'a Upid, timeout: Duration)
    -> BoxFuture<'a, Result<TaskEnd, PveError>>;

    /// A guest's configuration; class `NotFound` where that node has no such guest.
    fn guest_config<'a>(
        &'a self,
        node: &'a str,
        guest_type: GuestType,
        vmid: u32,
    ) -> BoxFuture<'a, Result<GuestConfig, PveError>>;

    /// A guest's power state.
    fn guest_status<'a>(
        &'a self,
        node: &'a str,
        guest_type: GuestType,
        vmid: u32,
    ) -> BoxFuture<'a, Result<GuestStatus, PveError>>;

    /// Where a vmid is in the whole cluster, and what it is (current at once, fact C2).
    fn locate(&self, vmid: u32) -> BoxFuture<'_, Result<Option<(String, GuestType)>, PveError>>;

    /// The cluster's nodes, also those that are down.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, PveError>>;

    /// Tasks of a node, newest first.
    fn node_tasks<'a>(
        &'a self,
        node: &'a str,
        query: &'a TaskQuery,
    ) -> BoxFuture<'a, Result<Vec<TaskRow>, PveError>>;

    /// What lies on a node's storage.
    fn storage_content<'a>(
        &'a self,
        node: &'a str,
        storage: &'a str,
        content: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Volume>, PveError>>;

    /// All replication jobs.
    fn replication(&self) -> BoxFuture<'_, Result<Vec<ReplicationJob>, PveError>>;
}

impl Wire for Client {
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        params: &'a [(String, ParamText)],
    ) -> BoxFuture<'a, Result<Answer, PveError>> {
        Client::send(self, method, path, params).boxed()
    }

    fn wait_task<'a>(
        &'a self,
        upid: &'a Upid,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<TaskEnd, PveError>> {
        async move { Client::wait_task(self, upid, timeout, &mut |_| {}).await }.boxed()
    }

    fn guest_config<'a>(
        &'a self,
        node: &'a str,
        guest_type: GuestType,
        vmid: u32,
    ) -> BoxFuture<'a, Result<GuestConfig, PveError>> {
        Client::guest_config(self, node, guest_type, vmid).boxed()
    }

    fn guest_status<'a>(
        &'a self,
        node: &'a str,
        guest_type: GuestType,
        vmid: u32,
    ) -> BoxFuture<'a, Result<GuestStatus, PveError>> {
        Client::guest_status(self, node, guest_type, vmid).boxed()
    }

    fn locate(&self, vmid: u32) -> BoxFuture<'_, Result<Option<(String, GuestType)>, PveError>> {
        async move {
            let inventory = self.inventory().await?;
            Ok(inventory
                .guests
                .into_iter()
                .find(|row| row.vmid == vmid)
                .map(|row| (row.node, row.guest_type)))
        }
        .boxed()
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, PveError>> {
        Client::nodes(self).boxed()
    }

    fn node_tasks<'a>(
        &'a self,
        node: &'a str,
        query: &'a TaskQuery,
    ) -> BoxFuture<'a, Result<Vec<TaskRow>, PveError>> {
        Client::node_tasks(self, node, query).boxed()
    }

    fn storage_content<'a>(
        &'a self,
        node: &'a str,
        storage: &'a str,
        content: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Volume>, PveError>> {
        Client::storage_content(self, node, storage, content).boxed()
    }

    fn replication(&self) -> BoxFuture<'_, Result<Vec<ReplicationJob>, PveError>> {
        Client::replication(self).boxed()
    }
}
