// Starts the agent with its web page in a directory of its own, and waits until it says its address.

import { spawn } from 'node:child_process';

const START_MS = 30000;

/**
 * @param {string} program @param {string} home the working directory, also home @param {string[]} args
 * @returns {Promise<{ child: any, url: string, origin: string, token: string, command: (command: any) => Promise<any> }>}
 */
export async function start(program, home, args) {
  const child = spawn(program, ['--mode', 'web', ...args], { cwd: home, env: { PATH: process.env.PATH, HOME: home, PI_CODING_AGENT_DIR: `${home}/.agent` } });
  let printed = '';
  let said = '';
  child.stderr.on('data', (chunk) => { said = (said + chunk).slice(-2000); });
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the agent says no address')), START_MS);
    child.stdout.on('data', (chunk) => {
      printed += chunk;
      const found = /UI:\s+(\S+)/.exec(printed)?.[1];
      if (found) { clearTimeout(timer); resolve(found); }
    });
    child.on('exit', (code) => { clearTimeout(timer); reject(new Error(`the agent ended with ${code}: ${said}`)); });
  });
  const { origin, searchParams } = new URL(url);
  const token = searchParams.get('token') || '';
  /** What another client would say: one command, its answer. */
  async function command(one) {
    const answer = await fetch(`${origin}/api/command`, { method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` }, body: JSON.stringify(one) });
    return answer.json();
  }
  return { child, url, origin, token, command };
}

/** Starts it at a port that it can have again when it is started anew: the system gives ports below 32768 to no process by itself. */
export async function startAtOwnPort(program, home, args) {
  for (let tries = 1; ; tries += 1) {
    const port = 20000 + Math.floor(Math.random() * 10000);
    try {
      return await start(program, home, ['--port', String(port), ...args]);
    } catch (error) {
      // Another process may have the port: the agent ends.
      if (tries === 5 || !error.message.includes('ended')) throw error;
    }
  }
}

/** Ends it, and waits until it is gone. */
export function stopped(child, signal = 'SIGTERM') {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode) { resolve(); return; }
    child.on('exit', resolve);
    child.kill(signal);
  });
}
