//! What a WASI component tries to learn, reach or wait for.

use std::{collections::HashMap, fs, io::Read, time};

/// Attacks that wait or leave.
pub fn wait(attack: &str) {
    match attack {
        "sleep" => std::thread::sleep(time::Duration::from_secs(20)),
        "exit" => std::process::exit(7),
        "stdout" => (0..1000).for_each(|_| println!("{}", "x".repeat(10_000))),
        _ => {}
    }
}

/// What there is to see, as text.
pub fn look(attack: &str) -> String {
    match attack {
        "environment" => {
            format!("{:?} {:?}", std::env::vars().collect::<Vec<_>>(), std::env::args().collect::<Vec<_>>())
        }
        "file" => format!("{:?}", fs::read_to_string("/etc/passwd").is_ok()),
        "folder" => format!("{:?}", fs::read_dir(".").is_ok()),
        "write" => format!("{:?}", fs::write("/tmp/proxops-hostile", "x").is_ok()),
        "clock" => {
            let epoch = time::SystemTime::now().duration_since(time::UNIX_EPOCH).map(|d| d.as_secs());
            let start = time::Instant::now();
            (0..100_000).for_each(|i| {
                std::hint::black_box(i);
            });
            format!("{epoch:?} {:?}", start.elapsed().as_nanos())
        }
        "input" => {
            let mut text = String::new();
            format!("{:?} {text:?}", std::io::stdin().read_to_string(&mut text))
        }
        "random" => {
            let map: HashMap<u32, ()> = (0..20).map(|i| (i, ())).collect();
            format!("{:?}", map.keys().collect::<Vec<_>>())
        }
        "socket" => format!("{:?}", std::net::TcpStream::connect("127.0.0.1:22").is_ok()),
        _ => "fine".to_owned(),
    }
}
