// Violations that axe finds; of the checks that passed, the rules alone.
const result = await axe.run(document, { resultTypes: ["violations"] });
seen.background = getComputedStyle(document.body).backgroundColor;
seen.right = result.passes.map((rule) => rule.id);
seen.wrong = result.violations.filter((rule) => ["serious", "critical"].includes(rule.impact))
  .flatMap(({ id, nodes }) => nodes.map((tag) => `${id}; ${tag.html}; ${tag.failureSummary}`));
