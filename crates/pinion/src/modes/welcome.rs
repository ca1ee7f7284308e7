//! `pinion` without arguments in a terminal: explains how to use the program and offers the web page.

use std::io::{BufRead as _, Write as _};
use std::sync::mpsc;
use std::time::Duration;

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain, say};

/// How long the offer waits for Enter, so that an unattended terminal gets its prompt back.
const WAIT: Duration = Duration::from_secs(120);

/// What the terminal shows.
const TEXT: &str = "\
Pinion is a headless coding agent. There are three ways to use it:

  1. Answer one prompt and exit:
       pinion -p \"What does this project do?\"

  2. Embed it: a host application talks JSON lines over stdin and stdout.
       pinion --mode rpc

  3. Use the web page in a browser:
       pinion --mode web --open

All options: pinion --help   Check keys and settings: pinion doctor
";

/// Prints the text and waits for Enter. Returns the arguments of the web page, or nothing if the user declines.
pub(crate) fn welcome(env: &Environment) -> anyhow::Result<Option<Args>> {
    say(TEXT);
    let mut stdout = std::io::stdout();
    write!(
        stdout,
        "\nPress Enter to open the web page for {}, or Ctrl-C to leave. ",
        env.cwd.display()
    )?;
    stdout.flush()?;
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process if no line comes.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _late = sender.send(read.map(|bytes| (bytes, line)));
    });
    match receiver.recv_timeout(WAIT) {
        // A line without a line break is the end of input (Ctrl-D).
        Ok(Ok((bytes, line))) if bytes > 0 && line.trim().is_empty() => Ok(Some(Args {
            mode: Some(Mode::Web),
            open: true,
            ..Args::default()
        })),
        Ok(Ok((bytes, line))) => {
            if bytes == 0 {
                say("");
            } else {
                complain(&format!(
                    "Nothing was opened. To send a prompt: pinion -p {:?}",
                    line.trim()
                ));
            }
            Ok(None)
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            say(&format!(
                "\nNo answer within {} seconds. To open the web page later: pinion --mode web --open",
                WAIT.as_secs()
            ));
            Ok(None)
        }
    }
}
