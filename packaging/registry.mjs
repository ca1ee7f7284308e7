// An npm registry on loopback with the packages of a directory: `node registry.mjs DIR [URL-OF-ANOTHER-FILE-SERVER]`.
// Prints its address. Answers 404 for every other package, as a registry does for one that was never published.
import { createServer } from "node:http";
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const dir = process.argv[2];
const packages = new Map();
for (const file of readdirSync(dir).filter((name) => name.endsWith(".tgz"))) {
  const bytes = readFileSync(join(dir, file));
  const manifest = JSON.parse(execFileSync("tar", ["-xzOf", join(dir, file), "package/package.json"], { encoding: "utf8" }));
  packages.set(manifest.name, { file, bytes, manifest });
}

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname).slice(1);
  const known = packages.get(path);
  const address = `http://127.0.0.1:${server.address().port}`;
  if (known) {
    const { file, bytes, manifest } = known;
    const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
    const shasum = createHash("sha1").update(bytes).digest("hex");
    const version = { ...manifest, dist: { tarball: `${address}/files/${file}`, integrity, shasum } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name: manifest.name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: version } }));
  } else if (path.startsWith("files/") && existsSync(join(dir, basename(path)))) {
    response.end(readFileSync(join(dir, basename(path))));
  } else {
    response.statusCode = 404;
    response.end("{}");
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
