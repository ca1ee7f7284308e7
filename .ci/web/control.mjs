// What the scripted agent of agent.mjs answers about limits, fallback models, checkpoints, background processes and sub-agents. A
// test puts what it wants into `agent.control`.

export function control() {
  return { limits: {}, used: { turns: 40, toolCalls: 12, tokens: 184220, cost: 0.61, seconds: 142.7 }, reached: null, fallback: [], changes: { checkpoints: 'files', files: [], unknown: [] },
    rewound: { restored: [], kept: [], unknown: [] }, processes: [], output: {}, awaited: new Set(), wakeups: false, subagent: null };
}

/** A process prints: the bytes, and an event if a reader asked for one. */
export function print(agent, processId, text) {
  agent.control.output[processId] = (agent.control.output[processId] || '') + text;
  if (agent.control.awaited.delete(processId)) agent.say({ type: 'process_output', processId, outputBytes: Buffer.byteLength(agent.control.output[processId]) });
}

const one = (agent, command) => agent.control.processes.find((process) => process.processId === command.processId);

export const CONTROL = {
  get_limits: (agent, _session, _command, ok) => ok({ limits: agent.control.limits, used: agent.control.used, ...(agent.control.reached ? { reached: agent.control.reached } : {}) }),
  set_limits(agent, _session, command, ok, no) {
    if (agent.control.refusal) { no(agent.control.refusal); return; }
    agent.control.limits = command.limits;
    agent.control.reached = null;
    ok({ limits: command.limits, used: agent.control.used });
  },
  continue(agent, session, _command, ok) { ok(); agent.say({ type: 'agent_start' }, session.handle); },
  get_fallback_models: (agent, _session, _command, ok) => ok({ models: agent.control.fallback }),
  set_fallback_models(agent, _session, command, ok) { agent.control.fallback = command.models; ok({ models: command.models }); },
  get_changes(agent, _session, command, ok, no) {
    if (agent.control.noCheckpoints) no('Checkpoints are off: start Pinion with --checkpoints files');
    else ok(agent.control.changesOf?.[command.entryId] || agent.control.changes);
  },
  rewind: (agent, _session, _command, ok) => ok(agent.control.rewound),
  unrewind: (agent, _session, _command, ok) => ok(agent.control.rewound),
  list_processes: (agent, _session, _command, ok) => ok({ processes: agent.control.processes, wakeups: agent.control.wakeups }),
  read_process(agent, _session, command, ok) {
    const bytes = Buffer.from(agent.control.output[command.processId] || '');
    const part = bytes.subarray(command.fromByte || 0, (command.fromByte || 0) + command.maxBytes);
    if (command.notify) agent.control.awaited.add(command.processId);
    ok({ process: { ...one(agent, command), outputBytes: bytes.length }, fromByte: command.fromByte || 0, nextByte: (command.fromByte || 0) + part.length, droppedBytes: 0, text: part.toString() });
  },
  write_process(agent, _session, command, ok) { agent.control.onwrite?.(command); ok(); },
  resize_process: (_agent, _session, _command, ok) => ok(),
  set_process_wakeups(agent, _session, command, ok, no) {
    if (agent.control.refusal) { no(agent.control.refusal); return; }
    agent.control.wakeups = command.enabled;
    ok();
  },
  kill_process(agent, session, command, ok) {
    const process = one(agent, command);
    process.status = 'killed';
    ok(process);
    agent.say({ type: 'process_end', process }, session.handle);
  },
  get_subagent_messages(agent, _session, command, ok) {
    const messages = agent.control.subagent.slice(command.fromByte || 0);
    ok({ sessionFile: '/s.jsonl', fromByte: command.fromByte || 0, nextByte: agent.control.subagent.length, reset: false, entries: [], messages });
  },
};
