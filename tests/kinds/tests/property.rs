//! Random manifests converge. Cases are numbered and repeat: `PROXOPS_SEED=4711 PROPTEST_CASES=1` runs one.

use proxops_kind_tests::converge::{files, hold, running, stopped};
use proxops_kind_tests::kinds::*;

/// Cases of each kind.
const CASES: u64 = 10_000;
/// Cases of running guests, which only some fields treat differently.
const RUNNING: u64 = 1_000;

#[test]
fn every_vm_converges() {
    hold(&VM, CASES, stopped);
}

#[test]
fn every_template_vm_converges() {
    hold(&TEMPLATE_VM, CASES, stopped);
}

#[test]
fn every_container_converges() {
    hold(&LXC, CASES, stopped);
}

#[test]
fn every_container_template_converges() {
    hold(&TEMPLATE_CT, CASES, stopped);
}

#[test]
fn every_iso_is_downloaded_once() {
    hold(&ISO, CASES, files);
}

#[test]
fn every_template_file_is_downloaded_once() {
    hold(&CT_TEMPLATE, CASES, files);
}

#[test]
fn every_disk_image_is_downloaded_once() {
    hold(&DISK_IMAGE, CASES, files);
}

#[test]
fn a_running_vm_converges_with_its_next_power_cycle() {
    hold(&VM, RUNNING, running);
}

#[test]
fn a_running_container_converges_with_its_next_power_cycle() {
    hold(&LXC, RUNNING, running);
}
