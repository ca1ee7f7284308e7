//! Writing the session to a file for people (pi-core.md 9). How it looks lives in `export`.

use export::{ExportInput, Format};
use wire::command::ExportParams;
use wire::reply::Exported;
use wire::table::Respond;

use crate::outbox::Responder;

use super::Session;

impl Session {
    /// Exports beside the session: a long one takes a moment.
    pub(super) async fn export(&mut self, responder: Responder<Exported>, params: ExportParams) {
        let given = params.output_path.filter(|path| !path.is_empty());
        let file = match (export::check(&self.log), self.log.path()) {
            (Ok(()), Some(file)) => file.to_path_buf(),
            (Err(error), _) => return responder.refuse(error.to_string()).await,
            (Ok(()), None) => return,
        };
        let path = given.unwrap_or_else(|| export::default_name(&file, Format::Html));
        let target = self.cwd.join(&path);
        let system_prompt = self.system_prompt();
        let tools = self.tool_specs();
        let header = self.log.header().clone();
        let entries = self.log.entries().to_vec();
        let leaf = self.log.leaf_id().map(str::to_owned);
        let name = self.log.session_name().map(str::to_owned);
        tokio::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                let input = ExportInput {
                    header: &header,
                    entries: &entries,
                    leaf_id: leaf.as_deref(),
                    system_prompt: Some(&system_prompt),
                    tools: &tools,
                    name: name.as_deref(),
                };
                export::write_file(&target, Format::of_path(&target), &input)
            });
            let outcome = match written.await {
                Ok(Ok(_)) => Ok(Exported { path }),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            responder.respond(outcome).await;
        });
    }
}
