// The panel that is shown while no model is configured and the built-in offline model answers: log in, store a key, or look for a
// local model server.

import { copy, el, fill, iconButton } from '../lib/dom.js';
import { toast } from './toasts.js';

/** The built-in model, which is not an AI. */
const isEcho = (model) => model.provider === 'offline' && model.id === 'echo';
const KEY_COMMAND = 'pinion auth login anthropic --api-key';

export class NoModel {
  /** @param {HTMLElement} node @param {import('../state/app.js').App} app */
  constructor(node, app) {
    this.node = node;
    this.app = app;
    this.logins = el('span.no-model-row');
    this.key = el('p.no-model-key', { hidden: true });
    this.isDismissed = false;
  }

  /** Shows or hides the panel for the model of a session. */
  update(session) {
    const { model } = session.state;
    const isMissing = session.loaded && Boolean(session.state.sessionId) && (!model || isEcho(model));
    this.node.hidden = !isMissing || this.isDismissed;
    if (this.node.hidden || this.node.firstChild) return;
    this.build();
    this.showLogins();
  }

  build() {
    const copyButton = iconButton('copy', 'Copy command', () => copy(KEY_COMMAND, copyButton), { class: 'small' });
    fill(this.key, 'Run ', el('code', { text: KEY_COMMAND }), copyButton,
      ' where the agent runs, or start the agent with the variable of a provider, for example ', el('code', { text: 'ANTHROPIC_API_KEY' }), '. Then choose the model here.');
    const keyButton = el('button.hint', { type: 'button', text: 'Use an API key', aria: { expanded: false }, onclick: () => {
      this.key.hidden = !this.key.hidden;
      keyButton.setAttribute('aria-expanded', String(!this.key.hidden));
    } });
    fill(this.node,
      el('div.no-model-head', {}, el('b', { text: 'No model is connected' }), el('span', { text: 'The built-in echo answers. It is not an AI.' }),
        iconButton('close', 'Hide', () => { this.isDismissed = true; this.node.hidden = true; }, { class: 'small' })),
      el('div.no-model-row', {}, this.logins, keyButton,
        el('button.hint', { type: 'button', text: 'Look for a local server', onclick: () => this.findModel('No local server answered. Start one, for example with: ollama serve') })),
      this.key);
  }

  async showLogins() {
    const answer = await this.app.ask({ type: 'get_login_providers' }).catch(() => null);
    const providers = (answer?.providers || []).filter((provider) => provider.available);
    fill(this.logins, providers.map((provider) => el('button.hint', { type: 'button', text: `Log in to ${provider.name || provider.id}`, onclick: (event) => this.logIn(provider, event.currentTarget) })));
  }

  async logIn(provider, button) {
    button.disabled = true;
    // The person reads a page of the provider meanwhile: the agent's own limit ends it.
    const answer = await this.app.ask({ type: 'login', providerId: provider.id }, this.app.current, 0).catch((error) => { this.app.failed(error); return null; });
    button.disabled = false;
    if (answer) await this.findModel('The login is stored, but the provider lists no model.', provider.id);
  }

  /** Looks which models there are now and uses the first one. */
  async findModel(otherwise, provider = null) {
    const { app } = this;
    await app.refreshModels().catch((error) => app.failed(error));
    const models = (app.models || []).filter((model) => !isEcho(model));
    const model = models.find((one) => one.provider === provider) || models[0];
    if (!model) { toast('warning', otherwise); return; }
    if (await app.tryAsk({ type: 'set_model', provider: model.provider, modelId: model.id })) toast('info', `${model.name || model.id} answers now.`);
    app.refresh(0);
  }
}
