// Runs the stories of scripts one after the other, so that ethers and viem are loaded once.
// A line asks, {"script": "ethers_swap", "arguments": [...]}; a line answers, {"told": ...} or {"failed": "..."}.
// A script exports `run(arguments)`, which gives what is told. A story that takes longer than the milliseconds of the
// first argument has failed, and the next one begins.
import readline from "node:readline";

const STORY_MS = Number(process.argv[2]);
const plain = (_, value) => (typeof value === "bigint" ? value.toString() : value);

async function answer({ script, arguments: given }) {
  try {
    const { run } = await import(`./${script}.mjs`);
    return { told: await run(given) };
  } catch (error) {
    return { failed: error.stack };
  }
}

// A promise that nobody waits for ends no later story: the story that made it misses what it wanted, and fails.
process.on("unhandledRejection", (error) => console.error(error));

for await (const line of readline.createInterface({ input: process.stdin })) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve({ failed: `a story took more than ${STORY_MS} ms: ${line}` }), STORY_MS);
  });
  process.stdout.write(JSON.stringify(await Promise.race([answer(JSON.parse(line)), late]), plain) + "\n");
  clearTimeout(timer);
}
process.exit(0); // what a library keeps open, such as a connection, is no reason to stay
