//! A run on a real Slurm cluster of one machine, in four parts, of which one is killed: the bytes are
//! those of a run on one machine. Skipped where Debian's `slurm-wlm` is not installed, or not as root.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::night::{QUESTIONS, assert_same, command, good_night, kept, small};
use support::{models, stderr, stdout};

/// A controller, two nodes and what tells them who is who, in a folder; they end with the test.
struct Slurm {
    folder: tempfile::TempDir,
    children: Vec<Child>,
}

impl Slurm {
    fn start() -> Option<Self> {
        for program in ["slurmctld", "slurmd", "munged"] {
            if !Path::new("/usr/sbin").join(program).exists() {
                println!("skipped: {program} is not installed (apt-get install slurm-wlm munge)");
                return None;
            }
        }
        let id = Command::new("id").arg("-u").output().unwrap();
        if stdout(&id).trim() != "0" {
            println!("skipped: slurmd needs root");
            return None;
        }
        let mut slurm = Slurm { folder: tempfile::tempdir().unwrap(), children: Vec::new() };
        // munged trusts no folder that others may write to, and its socket must be reached by all.
        let open = |path: &Path| Command::new("chmod").arg("755").arg(path).status().unwrap();
        open(slurm.folder.path());
        for name in ["state", "spool-n1", "spool-n2"] {
            fs::create_dir(slurm.path(name)).unwrap();
        }
        fs::write(slurm.path("munge.key"), [7_u8; 128]).unwrap();
        Command::new("chmod").arg("600").arg(slurm.path("munge.key")).status().unwrap();
        let socket = slurm.path("munge.socket");
        slurm.spawn(
            "munged",
            &[
                "--foreground".into(),
                "--force".into(),
                format!("--key-file={}", slurm.path("munge.key").display()),
                format!("--socket={}", socket.display()),
                format!("--pid-file={}", slurm.path("munged.pid").display()),
                format!("--log-file={}", slurm.path("munged.log").display()),
                format!("--seed-file={}", slurm.path("munged.seed").display()),
            ],
        );
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, at) = (host.trim(), |name: &str| slurm.path(name).display().to_string());
        let first = 20_000 + std::process::id() % 20_000;
        let mut conf = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={first}\nAuthType=auth/munge\n\
             AuthInfo=socket={}\nCryptoType=crypto/munge\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmUser=root\nSlurmdUser=root\n\
             StateSaveLocation={}\nSlurmctldPidFile={}\nSlurmdPidFile={}/slurmd-%n.pid\nSlurmdSpoolDir={}/spool-%n\n\
             SlurmctldLogFile={}\nSlurmdLogFile={}/slurmd-%n.log\nMpiDefault=none\nReturnToService=2\nKillWait=5\n\
             SlurmdParameters=config_overrides\nSwitchType=switch/none\nAccountingStorageType=accounting_storage/none\n\
             JobAcctGatherType=jobacct_gather/none\nSchedulerParameters=sched_interval=2,batch_sched_delay=0\n",
            socket.display(),
            at("state"),
            at("slurmctld.pid"),
            slurm.folder.path().display(),
            slurm.folder.path().display(),
            at("slurmctld.log"),
            slurm.folder.path().display(),
        );
        for (node, port) in [("n1", first + 1), ("n2", first + 2)] {
            conf += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
            );
        }
        conf += "PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n";
        fs::write(slurm.conf(), conf).unwrap();
        let conf = slurm.conf().display().to_string();
        slurm.spawn("slurmctld", &["-D".into(), "-f".into(), conf.clone()]);
        for node in ["n1", "n2"] {
            slurm.spawn(
                "slurmd",
                &["-D".into(), "-N".into(), node.into(), "-f".into(), conf.clone()],
            );
        }
        let start = Instant::now();
        loop {
            let states = slurm.command("sinfo").args(["-h", "-N", "-o", "%T"]).output().unwrap();
            if stdout(&states).lines().filter(|line| line.trim() == "idle").count() == 2 {
                return Some(slurm);
            }
            if start.elapsed() > Duration::from_secs(60) {
                let log = fs::read_to_string(slurm.path("slurmctld.log")).unwrap_or_default();
                panic!(
                    "the nodes did not come up: {}\n{}\n{log}",
                    stdout(&states),
                    stderr(&states)
                );
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn conf(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    fn spawn(&mut self, program: &str, arguments: &[String]) {
        let log =
            fs::File::create(self.path(&format!("{program}-{}.out", self.children.len()))).unwrap();
        let child = Command::new(Path::new("/usr/sbin").join(program))
            .args(arguments)
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.children.push(child);
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf());
        command
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.command("scancel").args(["--user", "root"]).output();
        for child in self.children.iter_mut().rev() {
            let _ = Command::new("kill").arg(child.id().to_string()).output();
            let start = Instant::now();
            while child.try_wait().is_ok_and(|status| status.is_none())
                && start.elapsed() < Duration::from_secs(5)
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The process that does this share, if there is one.
fn process(folder: &Path, stage: &str, shard: &str) -> Option<u32> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<String> = line
            .split(|b| *b == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let is_ours = words.iter().any(|word| word.starts_with(&*folder.to_string_lossy()));
        let is_share = words.windows(2).any(|two| two == ["--shard", shard]);
        (is_ours && is_share && words.iter().any(|word| word == stage)).then_some(id)
    })
}

#[test]
fn four_parts_of_which_one_is_killed_give_the_bytes_of_one_machine() {
    let Some(models) = models() else { return };
    let Some(slurm) = Slurm::start() else { return };
    let reference = small(&models);
    good_night(&reference);
    let expected = kept(&reference);

    let archive = small(&models);
    let pipeline = archive.pipeline().display().to_string();
    let submitted = command(&archive, &["cluster", "submit", &pipeline, "--shards", "4"])
        .env("SLURM_CONF", slurm.conf())
        .output()
        .unwrap();
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    println!("{}", stdout(&submitted));

    let logs = archive.path("work/cluster/000001/log");
    let all_logs = || {
        let mut all = String::new();
        for file in fs::read_dir(&logs).unwrap().flatten() {
            all += &format!(
                "{}: {}\n",
                file.path().display(),
                fs::read_to_string(file.path()).unwrap_or_default()
            );
        }
        all
    };
    let start = Instant::now();
    let mut killed = None;
    while !archive.path("work/runs/000001/summary.txt").exists() {
        assert!(start.elapsed() < Duration::from_secs(900), "it goes on and on: {}", all_logs());
        if killed.is_none()
            && let Some(id) = process(archive.folder.path(), "answer", "2")
        {
            // Late enough to have begun, early enough not to be done.
            std::thread::sleep(Duration::from_millis(400));
            let sent = Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap();
            let done = archive.path("work/cluster/000001/done/answer-2").exists();
            killed = (sent.success() && !done).then_some(id);
            assert!(killed.is_some(), "the part was over before it could be killed");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let logs = all_logs();
    assert!(killed.is_some(), "{logs}");
    assert!(logs.contains("the shares [2] died and are submitted again, alone"), "{logs}");
    assert_same(&kept(&archive), &expected, &format!("on four nodes\n{logs}"));
    let summary = fs::read_to_string(archive.path("work/runs/000001/summary.txt")).unwrap();
    assert!(summary.contains("published, all well"), "{summary}");
    assert!(
        summary.contains(&format!("{} questions: {} answered", QUESTIONS.len(), QUESTIONS.len())),
        "{summary}"
    );
    println!("{summary}");
    // The others were done once.
    let attempts = fs::read_to_string(archive.path("work/cluster/000001/attempts")).unwrap();
    assert_eq!(attempts.trim(), "2");
    for shard in ["0", "1", "3"] {
        let log = fs::read_to_string(
            archive.path(&format!("work/cluster/000001/log/answer-{shard}.log")),
        )
        .unwrap();
        assert_eq!(log.matches("questions answered").count(), 1, "{log}");
    }
}

#[test]
fn scripts_hold_the_settings_and_can_be_looked_at_before() {
    let archive = support::Archive::new(Path::new("/nonexistent/models"), 0.5);
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let cluster = "[cluster]\noptions = [\"--partition=night\"]\nshard_options = [\"--gres=gpu:1\"]\n\
                   setup = [\"module load cuda\"]\ncontainer = \"apptainer exec --nv florilegium.sif\"\n\
                   program = \"/opt/flori legium\"\n[questions]";
    fs::write(archive.pipeline(), text.replace("[questions]", cluster)).unwrap();
    // Reading counts tokens, which needs the tokenizer; without models it is refused by name.
    let pipeline = archive.pipeline().display().to_string();
    let refused =
        archive.florilegium(&["cluster", "submit", &pipeline, "--shards", "4", "--dry-run"]);
    assert!(stderr(&refused).contains("florilegium models fetch"), "{}", stderr(&refused));
    let Some(models) = models() else { return };
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let text = text.replace("/nonexistent/models", &models.display().to_string());
    fs::write(archive.pipeline(), text).unwrap();
    let output =
        archive.florilegium(&["cluster", "submit", &pipeline, "--shards", "4", "--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let script = |stage: &str| {
        fs::read_to_string(archive.path(&format!("work/cluster/000001/{stage}.sh"))).unwrap()
    };
    let answer = script("answer");
    for line in [
        "#!/bin/sh",
        "#SBATCH --requeue",
        "#SBATCH --partition=night",
        "#SBATCH --gres=gpu:1",
        "module load cuda",
        "exec apptainer exec --nv florilegium.sif '/opt/flori legium' cluster answer",
        "--shard \"$SLURM_ARRAY_TASK_ID\"",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    assert!(!script("publish").contains("gpu") && script("publish").contains("night"));
}
