#pragma once

/*
 * The folder of a run, STATE/runs/ID, and what is in it. Whoever reads or writes there has the
 * names from here. LOG_RUN_FILE and CHANGE_PROJECT_FILE are beside these.
 */
#define RECORD_FILE         "record.intoto.jsonl" /* signed; it has the digests of the others */
#define RECORD_SPEC_FILE    "spec.json"           /* the settled spec, canonical */
#define RECORD_PLAN_FILE    "plan.json"
#define RECORD_SPECS_DIR    "specs" /* in the state: each under its digest */
#define RECORD_PLANS_DIR    "plans"
#define RECORD_EFFECTS_FILE "effects.json" /* what it did to the project */
#define RECORD_PROJECT_LINK "project"      /* leads to the project; not signed */
#define RECORD_LAYER        "layer"        /* what it wrote, until that is applied or discarded */
#define RECORD_GIT_LAYER    "git-layer"    /* the same of git's folder, where that is outside */
#define RECORD_LAYER_GONE   "layer.gone"   /* the same, half removed */
#define RECORD_STDOUT_FILE  "stdout"       /* what it printed, where that is kept */
#define RECORD_STDERR_FILE  "stderr"
