//! What every store promises, told with two independent connections to one place.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use cluster::copy::{CopyError, copy};
use store::{SessionId, SessionStore, StoreError};

/// Where a store keeps its sessions.
pub(crate) trait Place {
    /// Another connection, which shares nothing with the others but the place.
    fn open(&self) -> impl Future<Output = Result<Box<dyn SessionStore>>>;
    /// Ends the engine's process without warning and starts it again on the same data.
    fn restart(&self) -> impl Future<Output = Result<()>>;
}

/// Runs a test, for two minutes at most.
pub(crate) fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(120), test)
            .await
            .context("the test did not end")?
    })
}

pub(crate) fn line(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// A session's id and its header.
pub(crate) fn session(id: &str) -> Result<(SessionId, Vec<u8>)> {
    let header = serde_json::json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-11-24T00:00:00.000Z", "cwd": "/w"});
    Ok((SessionId::new(id)?, line(&header.to_string())))
}

fn numbered(number: usize) -> Vec<u8> {
    let id = format!("{number:08x}");
    line(&serde_json::json!({"type": "custom", "customType": "n", "data": number, "id": id, "parentId": null, "timestamp": "2026-11-24T00:00:00.000Z"}).to_string())
}

/// All lines from a position on.
pub(crate) async fn all(store: &dyn SessionStore, id: &SessionId, from: u64) -> Result<Vec<Vec<u8>>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    loop {
        let more = store.load(id, from + lines.len() as u64).await?;
        if more.is_empty() {
            return Ok(lines);
        }
        lines.extend(more);
    }
}

/// The positions that an append named as its own and the session's.
fn stale<T>(result: store::Result<T>) -> Result<(u64, u64)> {
    match result {
        Err(StoreError::Stale { expected, actual, .. }) => Ok((expected, actual)),
        Err(other) => bail!("another error: {other}"),
        Ok(_) => bail!("it was accepted"),
    }
}

pub(crate) async fn appended_lines_load_byte_for_byte(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let (id, header) = session("bytes")?;
    ensure!(
        store.load(&id, 0).await?.is_empty(),
        "an unknown session has no lines"
    );
    ensure!(store.append(&id, std::slice::from_ref(&header), 0).await? == 1);
    let odd = vec![
        line("{\"text\":\"Grüße 😀 \u{2028} \\n\"}"),
        line("  {\"spaces\" : 1}\t\r"),
        line(""),
        vec![0xff, 0x00, 0x80],
        line("{\"last\":true}"),
    ];
    ensure!(store.append(&id, &odd, 1).await? == 6);
    let expected = [vec![header], odd].concat();
    ensure!(all(store.as_ref(), &id, 0).await? == expected);
    ensure!(all(place.open().await?.as_ref(), &id, 0).await? == expected);
    for bad in [vec![], vec![line("two\nlines")]] {
        let refused = store.append(&id, &bad, 6).await;
        ensure!(matches!(refused, Err(StoreError::BadLine)), "{refused:?}");
    }
    Ok(())
}

pub(crate) async fn wrong_position_is_refused(place: &impl Place) -> Result<()> {
    let (first, second) = (place.open().await?, place.open().await?);
    let (id, header) = session("positions")?;
    ensure!(stale(first.append(&id, &[numbered(1)], 3).await)? == (3, 0));
    first.append(&id, &[header.clone(), numbered(1)], 0).await?;
    ensure!(stale(second.append(&id, std::slice::from_ref(&header), 0).await)? == (0, 2));
    second.append(&id, &[numbered(2)], 2).await?;
    // The first connection still takes 2 for the end.
    ensure!(stale(first.append(&id, &[numbered(3)], 2).await)? == (2, 3));
    ensure!(stale(first.append(&id, &[numbered(3)], 4).await)? == (4, 3));
    ensure!(stale(first.load(&id, 4).await)? == (4, 3));
    ensure!(stale(first.watch(&id, 4).await.map(drop))? == (4, 3));
    ensure!(first.append(&id, &[numbered(3)], 3).await? == 4);
    let expected = [header, numbered(1), numbered(2), numbered(3)];
    ensure!(all(second.as_ref(), &id, 0).await? == expected);
    Ok(())
}

/// Appends its own lines at the position that the session has; returns the acknowledged lines with their positions.
async fn race(
    store: Box<dyn SessionStore>,
    id: SessionId,
    writer: usize,
    rounds: usize,
) -> Result<Vec<(u64, Vec<u8>)>> {
    let (mut position, mut won) = (1, Vec::new());
    for round in 0..rounds {
        let mine = numbered(writer * 1000 + round);
        loop {
            match store.append(&id, std::slice::from_ref(&mine), position).await {
                Ok(next) => {
                    ensure!(next == position + 1);
                    won.push((position, mine));
                    position = next;
                    break;
                }
                Err(StoreError::Stale { actual, .. }) => {
                    ensure!(
                        actual > position,
                        "refused at {position}, though the session is at {actual}"
                    );
                    position = actual;
                }
                Err(other) => return Err(other.into()),
            }
        }
    }
    Ok(won)
}

pub(crate) async fn racing_writers_win_each_position_once(place: &impl Place) -> Result<()> {
    const ROUNDS: usize = 25;
    let (id, header) = session("race")?;
    let store = place.open().await?;
    store.append(&id, std::slice::from_ref(&header), 0).await?;
    let writers = [
        tokio::spawn(race(place.open().await?, id.clone(), 1, ROUNDS)),
        tokio::spawn(race(place.open().await?, id.clone(), 2, ROUNDS)),
        tokio::spawn(race(place.open().await?, id.clone(), 3, ROUNDS)),
    ];
    let mut won = Vec::new();
    for writer in writers {
        won.extend(writer.await??);
    }
    won.sort();
    let expected: Vec<Vec<u8>> = std::iter::once(header)
        .chain(won.iter().map(|(_, line)| line.clone()))
        .collect();
    let positions: Vec<u64> = won.iter().map(|(position, _)| *position).collect();
    let wanted: Vec<u64> = (1..=3 * ROUNDS as u64).collect();
    ensure!(positions == wanted, "each position is won once: {positions:?}");
    ensure!(all(store.as_ref(), &id, 0).await? == expected);
    Ok(())
}

pub(crate) async fn load_begins_at_any_position(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let (id, header) = session("middle")?;
    let mut lines = vec![header];
    store.append(&id, &lines, 0).await?;
    // Another session in between, so that neighbours do not follow each other.
    let (other, other_header) = session("neighbour")?;
    store.append(&other, &[other_header], 0).await?;
    for (size, first) in [(1, 10), (3, 20), (2, 30), (5, 40)] {
        let batch: Vec<Vec<u8>> = (first..first + size).map(numbered).collect();
        store.append(&id, &batch, lines.len() as u64).await?;
        store
            .append(
                &other,
                &[numbered(first)],
                lines_of(store.as_ref(), &other).await?,
            )
            .await?;
        lines.extend(batch);
    }
    for from in 0..=lines.len() {
        let fresh = place.open().await?;
        let found = all(fresh.as_ref(), &id, from as u64).await?;
        ensure!(Some(found.as_slice()) == lines.get(from..), "from {from}");
    }
    Ok(())
}

async fn lines_of(store: &dyn SessionStore, id: &SessionId) -> Result<u64> {
    Ok(all(store, id, 0).await?.len() as u64)
}

pub(crate) async fn long_session_loads_in_pieces(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let (id, header) = session("long")?;
    let mut lines = vec![header];
    let filler = "x".repeat(30_000);
    for number in 0..400 {
        lines.push(line(&format!("{{\"n\":{number},\"f\":\"{filler}\"}}")));
    }
    let mut position = 0;
    for batch in lines.chunks(8) {
        position = store.append(&id, batch, position).await?;
    }
    let first = store.load(&id, 0).await?;
    ensure!(
        first.len() < lines.len(),
        "one load returned {} lines",
        first.len()
    );
    ensure!(all(place.open().await?.as_ref(), &id, 0).await? == lines);
    Ok(())
}

pub(crate) async fn list_names_sessions_with_odd_ids(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    ensure!(store.list().await?.is_empty());
    let mut ids = Vec::new();
    for id in [
        "plain",
        "with.dots",
        "slash/../up",
        "Ünïcode 😀",
        "a=2Eb",
        "star*>",
    ] {
        let (id, header) = session(id)?;
        store.append(&id, &[header.clone(), numbered(1)], 0).await?;
        ensure!(
            all(store.as_ref(), &id, 0).await? == [header, numbered(1)],
            "{id}"
        );
        ids.push(id);
    }
    ids.sort();
    ensure!(place.open().await?.list().await? == ids);
    Ok(())
}

pub(crate) async fn deleted_session_refuses_its_writer(place: &impl Place) -> Result<()> {
    let (store, other) = (place.open().await?, place.open().await?);
    let (id, header) = session("gone")?;
    let (kept, kept_header) = session("gone-not")?;
    store.append(&kept, &[kept_header], 0).await?;
    ensure!(!store.delete(&id).await?, "nothing to delete");
    let big = line(&format!("\"{}\"", "y".repeat(300_000)));
    store.append(&id, &[header.clone(), big], 0).await?;
    ensure!(other.delete(&id).await?);
    ensure!(stale(store.append(&id, &[numbered(1)], 2).await)? == (2, 0));
    ensure!(store.list().await? == [kept]);
    ensure!(all(store.as_ref(), &id, 0).await?.is_empty());
    // Another life of the session begins, and the writer of the first one stays refused.
    other.append(&id, std::slice::from_ref(&header), 0).await?;
    ensure!(stale(store.append(&id, &[numbered(1)], 2).await)? == (2, 1));
    ensure!(all(store.as_ref(), &id, 0).await? == [header]);
    Ok(())
}

/// Waits for a number of lines.
pub(crate) async fn take(watch: &mut dyn store::Watch, number: usize) -> Result<Vec<Vec<u8>>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    while lines.len() < number {
        let next = tokio::time::timeout(Duration::from_secs(40), watch.next())
            .await
            .with_context(|| format!("no line after {}", lines.len()))??;
        ensure!(!next.is_empty());
        lines.extend(next);
    }
    Ok(lines)
}

pub(crate) async fn watch_delivers_past_and_new_lines(place: &impl Place) -> Result<()> {
    let (writer, reader) = (place.open().await?, place.open().await?);
    let (id, header) = session("watched")?;
    let mut from_nothing = reader.watch(&id, 0).await?;
    writer
        .append(&id, &[header.clone(), numbered(1), numbered(2)], 0)
        .await?;
    let mut from_two = reader.watch(&id, 2).await?;
    let mut from_end = reader.watch(&id, 3).await?;
    ensure!(take(from_nothing.as_mut(), 3).await? == [header, numbered(1), numbered(2)]);
    ensure!(take(from_two.as_mut(), 1).await? == [numbered(2)]);
    // Nothing is there to see yet; giving up the wait must lose nothing.
    let early = tokio::time::timeout(Duration::from_millis(300), from_end.next()).await;
    ensure!(early.is_err(), "a line that nobody wrote");
    let big = line(&format!("\"{}\"", "z".repeat(200_000)));
    let new = [numbered(3), big, numbered(4)];
    writer.append(&id, &new, 3).await?;
    for watch in [&mut from_nothing, &mut from_two, &mut from_end] {
        ensure!(take(watch.as_mut(), 3).await? == new);
    }
    Ok(())
}

pub(crate) async fn large_lines_survive(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let (id, header) = session("large")?;
    // Above the limit for one message of a NATS server, and not a repetition of one byte.
    let image: String = (0..1_200_000_u64)
        .map(|n| char::from(b'A' + u8::try_from(n.wrapping_mul(n) % 26).unwrap_or_default()))
        .collect();
    let large = line(&format!("{{\"data\":\"{image}\"}}"));
    let lines = [
        header,
        numbered(1),
        large.clone(),
        numbered(2),
        large,
        numbered(3),
    ];
    let (front, back) = lines.split_at(4);
    store.append(&id, front, 0).await?;
    store.append(&id, back, 4).await?;
    let fresh = place.open().await?;
    for from in 0..=lines.len() {
        let found = all(fresh.as_ref(), &id, from as u64).await?;
        ensure!(Some(found.as_slice()) == lines.get(from..), "from {from}");
    }
    ensure!(stale(fresh.append(&id, back, 4).await)? == (4, 6));
    Ok(())
}

pub(crate) async fn lines_survive_engine_restart(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let (id, header) = session("restart")?;
    store.append(&id, &[header.clone(), numbered(1)], 0).await?;
    let mut watch = place.open().await?.watch(&id, 2).await?;
    place.restart().await?;
    ensure!(all(place.open().await?.as_ref(), &id, 0).await? == [header.clone(), numbered(1)]);
    // The connection from before goes on.
    ensure!(store.append(&id, &[numbered(2)], 2).await? == 3);
    ensure!(stale(place.open().await?.append(&id, &[numbered(3)], 2).await)? == (2, 3));
    ensure!(take(watch.as_mut(), 1).await? == [numbered(2)]);
    ensure!(all(store.as_ref(), &id, 0).await? == [header, numbered(1), numbered(2)]);
    Ok(())
}

pub(crate) async fn copies_append_only_what_is_missing(place: &impl Place) -> Result<()> {
    let store = place.open().await?;
    let dir = tempfile::tempdir()?;
    let files = crate::files::at(dir.path());
    let (id, header) = session("copied")?;
    let missing = copy(store.as_ref(), &files, &id).await;
    ensure!(matches!(missing, Err(CopyError::Missing)), "{missing:?}");
    let big = line(&format!("{{\"b\":\"{}\"}}", "b".repeat(400_000)));
    files
        .append(&id, &[header, numbered(1), big, numbered(2)], 0)
        .await?;
    let pushed = copy(&files, store.as_ref(), &id).await?;
    ensure!((pushed.added, pushed.position, pushed.is_ahead) == (4, 4, false));
    let again = copy(&files, store.as_ref(), &id).await?;
    ensure!((again.added, again.position, again.is_ahead) == (0, 4, false));
    store.append(&id, &[numbered(3)], 4).await?;
    let ahead = copy(&files, store.as_ref(), &id).await?;
    ensure!((ahead.added, ahead.position, ahead.is_ahead) == (0, 5, true));
    let pulled = copy(store.as_ref(), &files, &id).await?;
    ensure!((pulled.added, pulled.position) == (1, 5));
    let both = (all(store.as_ref(), &id, 0).await?, all(&files, &id, 0).await?);
    ensure!(both.0 == both.1);
    store.append(&id, &[numbered(4)], 5).await?;
    files.append(&id, &[numbered(5)], 5).await?;
    let diverged = copy(store.as_ref(), &files, &id).await;
    ensure!(matches!(diverged, Err(CopyError::Diverged(6))), "{diverged:?}");
    Ok(())
}

/// For stores that are reached over a network: the response to an append is lost, and the append is sent again.
#[cfg(any(feature = "nats", feature = "s3"))]
pub(crate) async fn lost_response(
    place: &impl Place,
    proxied: &dyn SessionStore,
    proxy: &crate::proxy::Proxy,
) -> Result<()> {
    let (id, header) = session("lost")?;
    let direct = place.open().await?;
    proxied.append(&id, std::slice::from_ref(&header), 0).await?;
    let mut lines = vec![header];
    for number in 0..3 {
        let batch = [numbered(number * 2), numbered(number * 2 + 1)];
        let lost = proxy.lose_responses();
        let position = lines.len() as u64;
        ensure!(proxied.append(&id, &batch, position).await? == position + 2);
        ensure!(proxy.lost() > lost, "no response was lost");
        lines.extend(batch);
        ensure!(
            all(direct.as_ref(), &id, 0).await? == lines,
            "stored once, in order"
        );
    }
    // The same, but another writer continues before the append is sent again.
    proxy.lose_responses();
    let batch = [numbered(100)];
    let (first, second) = tokio::join!(proxied.append(&id, &batch, 7), async {
        let mut watch = direct.watch(&id, 7).await?;
        let seen = take(watch.as_mut(), 1).await?;
        direct.append(&id, &[numbered(200)], 8).await?;
        anyhow::Ok(seen)
    });
    ensure!(first? == 8, "it was stored, whatever came after it");
    ensure!(second? == batch);
    lines.extend([numbered(100), numbered(200)]);
    ensure!(all(direct.as_ref(), &id, 0).await? == lines);
    Ok(())
}
