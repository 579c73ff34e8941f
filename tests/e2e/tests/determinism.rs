//! The same plan, byte by byte, whatever the order of the composition and of the API's lists.

use crate::support::{iso, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{GuestKind, seed};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// A proxy that turns the list in every answer round. One request a connection.
fn turning_proxy(upstream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let upstream = upstream.clone();
            std::thread::spawn(move || {
                let _ = forward(client, &upstream);
            });
        }
    });
    url
}

/// Head without its last line, and body.
fn message(stream: &TcpStream) -> std::io::Result<(Vec<String>, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

fn send(stream: &mut TcpStream, head: &[String], body: &[u8]) -> std::io::Result<()> {
    let dropped = ["content-length", "connection", "accept-encoding"];
    for line in head {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !dropped.contains(&name.as_str()) {
            write!(stream, "{line}\r\n")?;
        }
    }
    write!(stream, "content-length: {}\r\nconnection: close\r\n\r\n", body.len())?;
    stream.write_all(body)
}

fn forward(mut client: TcpStream, upstream: &str) -> std::io::Result<()> {
    let (head, body) = message(&client)?;
    let mut server = TcpStream::connect(upstream)?;
    // PVE refuses a body on GET, and an empty one is none.
    send(&mut server, &head, &body)?;
    let (head, body) = message(&server)?;
    let body = match serde_json::from_slice::<Value>(&body) {
        Ok(mut answer) => {
            if let Some(list) = answer["data"].as_array_mut() {
                list.reverse();
            }
            answer.to_string().into_bytes()
        }
        Err(_) => body,
    };
    send(&mut client, &head, &body)
}

/// Something of everything: creates, updates, downloads, deletes, deferrals, anomalies, unknown, skipped, pending.
fn bench() -> Bench {
    let mut world = seed::empty();
    for (vmid, name, tags) in [
        (200, "old-a", "proxops"),
        (201, "old-b", "proxops"),
        (202, "old-c", "proxops"),
        (203, "old-d", "proxops"),
        (110, "drifted", "proxops;b;a"),
        (111, "drifted-too", ""),
        (112, "foreign", ""),
        (113, "elsewhere", "proxops"),
    ] {
        let node = if vmid == 113 { "pve03" } else { "pve01" };
        let disk = format!("local-lvm:vm-{vmid}-disk-0,size=2G");
        let config = [
            ("name", name),
            ("tags", tags),
            ("memory", "1024"),
            ("cores", "1"),
            ("cpu", "host"),
            ("scsi0", disk.as_str()),
            ("net0", "virtio=BC:24:11:00:00:AA,bridge=vmbr0"),
            ("net3", "virtio=BC:24:11:00:00:AC,bridge=vmbr0"),
        ];
        world.add_guest(GuestKind::Qemu, vmid, node, &config).running = vmid % 2 == 0;
    }
    world.set_node("pve03", false);
    let mut bench = Bench::new(world);
    for (vmid, name) in
        [(110, "drifted"), (111, "drifted-too"), (112, "not-that-name"), (120, "new-a"), (121, "new-b")]
    {
        bench.documents(
            &format!("vm/{CLUSTER}/{name}.yaml"),
            &[vm(name, vmid, json!({"hardware": {"cdrom": {"iso": "b"}}}))],
        );
    }
    bench.documents(
        &format!("vm/{CLUSTER}/elsewhere.yaml"),
        &[vm("elsewhere", 113, json!({"node": "pve03"}))],
    );
    let mut sleeping = vm("sleeping", 130, json!({}));
    sleeping["metadata"]["annotations"] = json!({"proxops/reconcile": "suspended"});
    bench.documents(&format!("vm/{CLUSTER}/sleeping.yaml"), &[sleeping]);
    for name in ["c", "a", "b"] {
        bench.documents(&format!("iso/{CLUSTER}/{name}.yaml"), &[iso(name)]);
    }
    bench
}

#[test]
fn the_plan_is_byte_identical_whatever_the_order_of_manifests_and_of_api_answers() {
    let mut bench = bench();
    let first = bench.diff();
    let lists: Vec<&str> = ["actions", "anomalies", "unknown", "deferred", "skipped"]
        .into_iter()
        .filter(|list| first.list(list).len() < if *list == "skipped" { 1 } else { 2 } && *list != "unknown")
        .collect();
    assert!(lists.is_empty(), "too little in {lists:?} to see an order: {first}");
    assert!(!first.list("unknown").is_empty(), "{first}");
    let text = bench.run(&["diff"]);

    bench.reverse_list();
    assert_eq!(bench.diff().stdout, first.stdout, "manifests turned round");
    assert_eq!(bench.run(&["diff"]).stdout, text.stdout, "manifests turned round");

    let upstream = bench.url().trim_start_matches("http://").to_owned();
    bench.point_at(&turning_proxy(upstream));
    assert_eq!(bench.diff().stdout, first.stdout, "answers turned round");
    assert_eq!(bench.run(&["diff"]).stdout, text.stdout, "answers turned round");
    bench.reverse_list();
    assert_eq!(bench.diff().stdout, first.stdout, "answers turned round, manifests not");
}

#[test]
fn validate_says_the_same_whatever_the_order_of_manifests() {
    let mut bench = Bench::offline("https://192.0.2.1:8006");
    for (name, vmid) in [("c", 100), ("a", 101), ("b", 102)] {
        let over = json!({"hardware": {"cdrom": {"iso": "none-such"}}, "memory": "1KiB"});
        bench.documents(&format!("vm/{CLUSTER}/{name}.yaml"), &[vm(name, vmid, over)]);
    }
    let first = bench.run(&["validate"]).exits(1);
    assert!(first.stdout.contains("6 errors"), "{first}");
    bench.reverse_list();
    assert_eq!(bench.run(&["validate"]).stdout, first.stdout);
}
