// Runs the stories of scripts one after the other, so that ethers and viem are loaded once.
// A line asks, {"script": "ethers_swap", "arguments": [...]}; a line answers, {"told": ...} or {"failed": "..."}.
// A script exports `run(arguments)`, which gives what is told.
import readline from "node:readline";

const STORY_MS = 45_000 * Number(process.env.TEST_PATIENCE ?? 1); // as tests/support/patience.py has it
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
  const late = setTimeout(() => {
    console.error(`a story took more than ${STORY_MS} ms: ${line}`);
    process.exit(1);
  }, STORY_MS);
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line)), plain) + "\n");
  clearTimeout(late);
}
process.exit(0); // what a library keeps open, such as a connection, is no reason to stay
