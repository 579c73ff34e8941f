//! Facts T8 to T10, T19 to T22, T28 and the schema texts.

use crate::{Lab, VM, json};

const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";

#[test]
fn an_unknown_parameter_is_a_400_keyed_by_it_t21() {
    let mut lab = Lab::with_vm();
    for key in [
        "hidden",
        "nestedvirt",
        "secure-boot",
        "tpm0",
        "nvme0",
        "bootspeed",
        "netboot",
        "scsi31",
        "net32",
        "ide4",
        "ide01",
    ] {
        assert_eq!(lab.param_error("PUT", VM, json!({key: "1"}), key), UNKNOWN, "{key}");
    }
}

#[test]
fn an_unknown_key_in_a_property_string_is_keyed_by_the_parameter_t21() {
    let mut lab = Lab::with_vm();
    let text = lab.param_error("PUT", VM, json!({"net0": "virtio,bridge=vmbr0,vlan=5"}), "net0");
    assert_eq!(text, format!("invalid format - format error\nnet0.vlan: {UNKNOWN}\n"));
    // ssd is no key of virtio, iothread none of ide (Q8)
    for (slot, value) in [
        ("virtio0", "local-lvm:1,ssd=1"),
        ("ide0", "local-lvm:1,iothread=1"),
        ("scsi1", "local-lvm:1,mbcache=1"),
    ] {
        assert!(lab.param_error("PUT", VM, json!({slot: value}), slot).contains(UNKNOWN), "{slot}");
    }
}

#[test]
fn top_level_booleans_are_0_and_1_and_nothing_else_t10() {
    let mut lab = Lab::with_vm();
    for value in ["true", "yes", "on", "", "2"] {
        let text = lab.param_error("PUT", VM, json!({"onboot": value}), "onboot");
        assert_eq!(text, format!("type check ('boolean') failed - got '{value}'"));
    }
    for value in [json!("1"), json!(0), json!(true), json!(1), json!(false)] {
        lab.put(json!({"onboot": value}));
    }
    assert_eq!(lab.vm(101)["onboot"], 0);
}

#[test]
fn booleans_in_property_strings_are_wide_and_printed_as_1_and_0_t10() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=Yes,link_down=off"}));
    assert_eq!(lab.vm(101)["net0"], "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,link_down=0");
    let text = lab.param_error("PUT", VM, json!({"hostpci0": "0000:01:00.0,pcie=2"}), "hostpci0");
    assert!(text.contains("type check ('boolean') failed - got '2'"), "{text}");
}

#[test]
fn schema_texts_are_pves_t22() {
    let mut lab = Lab::with_vm();
    let cases = [
        ("cores", json!("0"), "value must have a minimum value of 1"),
        ("cores", json!("x"), "type check ('integer') failed - got 'x'"),
        ("cpulimit", json!("129"), "value must have a maximum value of 128"),
        ("bios", json!("uefi"), "value 'uefi' does not have a value in the enumeration 'seabios, ovmf'"),
        ("startdate", json!("soon"), "value does not match the regex pattern"),
        ("description", json!("x".repeat(8193)), "value may only be 8192 characters long"),
        ("cores", json!(["1", "2"]), "type check ('integer') failed - got ARRAY"),
        (
            "scsi1",
            json!("local-lvm:1,local-lvm:2"),
            "invalid format - duplicate key in comma-separated list property: file\n",
        ),
        (
            "memory",
            json!("15"),
            "invalid format - format error\nmemory.current: value must have a minimum value of 16\n",
        ),
    ];
    for (key, value, text) in cases {
        assert_eq!(lab.param_error("PUT", VM, json!({key: value}), key), text);
    }
    let text = lab.param_error("POST", "/nodes/pve01/qemu", json!({}), "vmid");
    assert_eq!(text, "property is missing and it is not optional");
    let text = lab.param_error("PUT", VM, json!({"force": "1", "cores": "1"}), "delete");
    assert_eq!(text, "missing property required by 'force'");
}

#[test]
fn a_parameter_that_contradicts_the_path_is_refused_t8() {
    let mut lab = Lab::with_vm();
    let text = lab.param_error("PUT", VM, json!({"vmid": "102", "cores": "1"}), "vmid");
    assert_eq!(text, "duplicate parameter (already defined in URI) with conflicting values!");
    lab.put(json!({"vmid": "101", "cores": "1"}));
}

#[test]
fn an_array_for_a_list_format_is_joined_t9() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": ["b", "a"]}));
    assert_eq!(lab.vm(101)["tags"], "a;b");
}

#[test]
fn unknown_paths_and_verbs_are_501_t19() {
    let mut lab = Lab::with_vm();
    assert_eq!(
        lab.error("GET", "/cluster/nodes", json!({})),
        (501, "Method 'GET /cluster/nodes' not implemented".into())
    );
    assert_eq!(lab.error("POST", "/nodes/pve01/qemu/101/untemplate", json!({})).0, 501);
    assert_eq!(lab.error("DELETE", "/version", json!({})).0, 501);
}

#[test]
fn raw_ssh_keys_are_a_400_and_a_bad_key_a_500_q22() {
    let mut lab = Lab::with_vm();
    let raw = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample x";
    let text = lab.param_error("PUT", VM, json!({"sshkeys": raw}), "sshkeys");
    assert_eq!(text, format!("invalid format - invalid urlencoded string: {raw}\n"));
    assert_eq!(
        lab.error("PUT", VM, json!({"sshkeys": "nonsense"})),
        (500, "SSH public key validation error".into())
    );
    let good = raw.replace(' ', "%20");
    lab.put(json!({"sshkeys": good}));
    assert_eq!(lab.vm(101)["sshkeys"], good);
}

#[test]
fn hostpci_addresses_are_lower_case_q16() {
    let mut lab = Lab::with_vm();
    for good in [
        "01:00",
        "0000:01:00.0",
        "00000:01:00.0;0000:02:00",
        "host=0000:0a:00.0,pcie=1,x-vga=1,mdev=nvidia-22",
    ] {
        lab.put(json!({"hostpci0": good}));
        assert_eq!(lab.vm(101)["hostpci0"], good);
    }
    for bad in ["0000:0A:00.0", "01", "0000:01:00.0,mdev=a/b"] {
        let text = lab.param_error("PUT", VM, json!({"hostpci0": bad}), "hostpci0");
        assert!(text.contains("does not match the regex pattern"), "{bad}: {text}");
    }
}

#[test]
fn a_gateway_needs_an_address_q21() {
    let mut lab = Lab::with_vm();
    let text = lab.param_error("PUT", VM, json!({"ipconfig0": "gw=192.0.2.1"}), "ipconfig0");
    assert!(text.contains("missing property required by 'gw'"), "{text}");
    // passes the schema although the interface then has no address
    lab.put(json!({"ipconfig0": "ip=dhcp,gw=192.0.2.1"}));
    assert!(lab.param_error("PUT", VM, json!({"ipconfig0": "ip=192.0.2.5"}), "ipconfig0").contains("ipv4"));
}

#[test]
fn tags_may_hold_a_hyphen_but_not_begin_with_one_c3() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": "web-01;_x;1.2+3"}));
    assert!(lab.param_error("PUT", VM, json!({"tags": "-web"}), "tags").starts_with("invalid format - "));
}

#[test]
fn cpu_models_and_flags_are_known_ones_q14() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"cpu": "x86-64-v2-AES,flags=+aes;-pcid;+nested-virt,hidden=1"}));
    for (cpu, text) in [
        ("nonsense", "is not defined"),
        ("host,flags=+vmx", "must be a subset of"),
        ("host,flags=aes", "regex"),
    ] {
        assert!(lab.param_error("PUT", VM, json!({"cpu": cpu}), "cpu").contains(text), "{cpu}");
    }
}

#[test]
fn throttles_that_contradict_each_other_do_not_parse() {
    let mut lab = Lab::with_vm();
    for bad in ["mbps=1,mbps_rd=1", "mbps_wr_max=5", "iops_max=5", "bps=1000000,mbps=1"] {
        let text =
            lab.param_error("PUT", VM, json!({"scsi0": format!("local-lvm:vm-101-disk-0,{bad}")}), "scsi0");
        assert_eq!(text, "unable to parse drive options", "{bad}");
    }
    lab.put(json!({"scsi0": "local-lvm:vm-101-disk-0,mbps_rd=1,mbps_rd_max=2,iops=5,bps_wr=2500000"}));
    let drive = "local-lvm:vm-101-disk-0,iops=5,mbps_rd=1,mbps_rd_max=2,mbps_wr=2.5,size=32G";
    assert_eq!(lab.vm(101)["scsi0"], drive, "bps become mbps (Q35)");
}
