"use strict";
// Finds the program for this machine among the optional dependencies.

/** Packages with a program that runs here, best first. A program for musl is static and runs on every Linux. */
function candidates() {
  const base = `@pinion-agent/cli-${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return [base];
  const report = /** @type {any} */ (process.report?.getReport());
  const glibc = report?.header.glibcVersionRuntime;
  return glibc ? [base, `${base}-musl`] : [`${base}-musl`];
}

/** Returns the path of the program. Throws an error that says what to do if no package has one. */
function program() {
  for (const name of candidates()) {
    try {
      return require.resolve(`${name}/bin/pinion`);
    } catch {}
  }
  throw new Error(
    `@pinion-agent/cli: the package ${candidates()[0]} is not installed. ` +
      "Either npm was told to leave out optional dependencies (--omit=optional), or there is no program for this system. " +
      "Install again without that option, or build Pinion: cargo install --locked pinion",
  );
}

module.exports = { program };
