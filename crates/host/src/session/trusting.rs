//! Whether the session's project is trusted: what a client is told of it and may decide, and the session's settings after a
//! decision. Who decided what is in `config::trust`; the question to extensions is beside their other questions.

use std::path::Path;
use std::sync::Arc;

use config::trust::ProjectAccess;
use config::trust::{DecidedBy, held_back};
use pinion_core::Change;
use wire::command::ProjectTrustParams;
use wire::reply::ProjectTrust;
use wire::state::{HeldBack, TrustState};

use crate::agent::Agent;
use crate::off_thread::off_thread;

use super::Session;

impl Session {
    /// What of the project is held back; none when nothing is.
    pub(super) fn trust_state(&self) -> Option<TrustState> {
        let agent = &self.agent;
        let held = held_back(&agent.project(), &agent.settings);
        let pending = agent.decision().access != agent.settings.project;
        (!held.is_empty() || pending).then(|| TrustState {
            trusted: agent.settings.project == ProjectAccess::Full,
            decided_by: agent.settings.decided_by.word().to_owned(),
            held_back: held
                .into_iter()
                .map(|held| HeldBack {
                    kind: held.kind.to_owned(),
                    path: held.path.to_string_lossy().into_owned(),
                    keys: held.keys,
                })
                .collect(),
            pending,
        })
    }

    pub(super) fn get_project_trust(&self) -> ProjectTrust {
        let state = self.trust_state();
        ProjectTrust {
            cwd: self.agent.cwd.to_string_lossy().into_owned(),
            project_trust: state.unwrap_or_else(|| TrustState {
                trusted: self.agent.settings.project == ProjectAccess::Full,
                decided_by: self.agent.settings.decided_by.word().to_owned(),
                held_back: Vec::new(),
                pending: false,
            }),
        }
    }

    /// The client decides. What is loaded stays as it is until the next session or reload.
    pub(super) fn set_project_trust(&mut self, params: ProjectTrustParams) -> Result<ProjectTrust, String> {
        let trust = &self.agent.trust;
        if params.remember {
            let stored = trust.file().set(&self.agent.cwd, params.trusted);
            stored.map_err(|problem| problem.to_string())?;
        }
        trust.set(&self.agent.cwd, params.trusted, DecidedBy::Client);
        Ok(self.get_project_trust())
    }

    /// The settings of the directory that the session goes on in, as decisions on trust are by now.
    pub(super) async fn fit_agent(&mut self, cwd: &Path) {
        let (agent, cwd) = (Arc::clone(&self.agent), cwd.to_path_buf());
        let fitting = off_thread(move || agent.fitting(&cwd)).await;
        self.take_agent(fitting);
    }

    /// What the settings said counts as they say it now; what the client or an extension switched stays so.
    fn take_agent(&mut self, agent: Arc<Agent>) {
        fn follow<T: PartialEq>(value: &mut T, old: &T, new: T) {
            if value == old {
                *value = new;
            }
        }
        let old = std::mem::replace(&mut self.agent, agent);
        let (was, now) = (old.loop_settings(), self.agent.loop_settings());
        let mut kept = self.machine.settings();
        follow(&mut kept.steering_mode, &was.steering_mode, now.steering_mode);
        follow(&mut kept.follow_up_mode, &was.follow_up_mode, now.follow_up_mode);
        follow(&mut kept.interrupt_mode, &was.interrupt_mode, now.interrupt_mode);
        follow(&mut kept.retry, &was.retry, now.retry);
        self.step(Change::Settings(kept).into());
        let (was, now) = (&old.settings, &self.agent.settings);
        follow(
            &mut self.auto_compaction,
            &was.compaction.enabled,
            now.compaction.enabled,
        );
        let tools = self.agent.options.tools.clone();
        if self.tools.active_names() == old.options.tools {
            self.tools.activate(tools);
        }
    }

    /// Everything that files say about this session, read again.
    pub(super) fn load_anew(&mut self) {
        let cwd = self.cwd.clone();
        let agent = Arc::new(self.agent.maker.make(&cwd));
        self.take_agent(agent);
        self.permitting = self.permitting.anew(&self.agent, &self.cwd);
        self.resources = self.agent.load_resources(&self.cwd);
        self.system_prompt = None;
    }
}
