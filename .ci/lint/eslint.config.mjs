// Rules for JavaScript. `.ci/lint/run` copies this file to where the pinned packages are, so that its imports resolve.

import { readFileSync, readdirSync } from 'node:fs';
import js from '@eslint/js';
import globals from 'globals';

/** Names that the scripts of the exported page declare: `crates/export/src/page.rs` makes one script of them. */
function exportedNames() {
  const folder = 'crates/export/assets/';
  const sources = readdirSync(folder).filter((name) => name.endsWith('.js')).map((name) => readFileSync(folder + name, 'utf8'));
  return Object.fromEntries(sources
    .flatMap((source) => [...source.matchAll(/^(?:async )?(?:const|let|function\*?|class) (\w+)/gm)])
    .map(([, name]) => [name, 'writable']));
}

const browser = ['crates/web/page/**', 'crates/export/assets/**'];

export default [
  { ignores: ['**/vendor/**', 'target/**'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: 'module' },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'array-callback-return': 'error',
      'consistent-return': 'error',
      'default-case-last': 'error',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-empty': ['error', { allowEmptyCatch: true }],
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-self-compare': 'error',
      'no-throw-literal': 'error',
      'no-unmodified-loop-condition': 'error',
      'no-unreachable-loop': 'error',
      'no-unused-vars': ['error', { caughtErrors: 'none', ignoreRestSiblings: true, varsIgnorePattern: '^_' }],
      'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
      'no-useless-return': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      radix: 'error',
      // Terminal output is full of control characters, and the code that removes them has to name them.
      'no-control-regex': 'off',
    },
  },
  { files: ['**/*.js', '**/*.mjs', '**/*.cjs'], ignores: browser, languageOptions: { globals: globals.node } },
  { files: ['**/*.cjs', 'packaging/npm/**/*.js'], languageOptions: { sourceType: 'commonjs' } },
  { files: browser.map((folder) => `${folder}/*.js`), languageOptions: { globals: globals.browser } },
  { files: ['crates/web/page/test/**'], languageOptions: { globals: globals.node } },
  { files: ['crates/web/page/sw.js'], languageOptions: { globals: globals.serviceworker } },
  // Functions that tests send to a browser as text.
  { files: ['.ci/**'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  {
    files: ['crates/export/assets/*.js'],
    languageOptions: { sourceType: 'script', globals: { ...globals.browser, ...exportedNames() } },
    rules: { 'no-redeclare': ['error', { builtinGlobals: false }], 'no-unused-vars': ['error', { vars: 'local', caughtErrors: 'none' }] },
  },
];
