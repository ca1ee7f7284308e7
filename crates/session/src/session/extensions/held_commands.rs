//! Which commands wait until the extensions of the session are loaded.

use wire::SessionCommand;

/// Returns true if a command depends on what extensions register or listen to.
pub(super) fn depends(command: &SessionCommand) -> bool {
    // Prompts may be slash commands of an extension or go to its `input` handlers. Session changes, compactions, shell commands and
    // navigation ask handlers first, handlers hear of new models, levels and names, and the lists contain what extensions register.
    // Extensions may decide on trust while they load. `abort` and `get_state` are not here: a client can always stop and look.
    matches!(
        command,
        SessionCommand::Prompt(_)
            | SessionCommand::Steer(_)
            | SessionCommand::FollowUp(_)
            | SessionCommand::QueueMessage(_)
            | SessionCommand::AbortAndPrompt(_)
            | SessionCommand::Continue(_)
            | SessionCommand::GetCommands(_)
            | SessionCommand::GetAvailableCommands(_)
            | SessionCommand::GetProjectTrust(_)
            | SessionCommand::SetProjectTrust(_)
            | SessionCommand::CompleteArguments(_)
            | SessionCommand::GetTools(_)
            | SessionCommand::SetActiveTools(_)
            | SessionCommand::ReloadResources(_)
            | SessionCommand::GetShortcuts(_)
            | SessionCommand::RunShortcut(_)
            | SessionCommand::SetModel(_)
            | SessionCommand::CycleModel(_)
            | SessionCommand::SetThinkingLevel(_)
            | SessionCommand::CycleThinkingLevel(_)
            | SessionCommand::SetSessionName(_)
            | SessionCommand::GetAvailableModels(_)
            | SessionCommand::GetLoginProviders(_)
            | SessionCommand::Login(_)
            | SessionCommand::Compact(_)
            | SessionCommand::Handoff(_)
            | SessionCommand::Bash(_)
            | SessionCommand::Reset(_)
            | SessionCommand::NewSession(_)
            | SessionCommand::SwitchSession(_)
            | SessionCommand::ContinueSession(_)
            | SessionCommand::Fork(_)
            | SessionCommand::Branch(_)
            | SessionCommand::Clone(_)
            | SessionCommand::NavigateTree(_)
    )
}

#[cfg(test)]
mod tests {
    use wire::SessionCommand;
    use wire::command::NoParams;

    use super::depends;

    #[test]
    fn tools_depend_on_extensions_aborts_do_not() {
        assert!(depends(&SessionCommand::GetTools(NoParams::default())));
        assert!(depends(&SessionCommand::GetCommands(NoParams::default())));
        assert!(!depends(&SessionCommand::Abort(NoParams::default())));
        assert!(!depends(&SessionCommand::GetState(NoParams::default())));
    }
}
