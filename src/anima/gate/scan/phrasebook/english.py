"""Commanding phrases in English."""

from __future__ import annotations

from anima.gate.scan.phrasebook.entry import AUTHORITY, CONCEAL, LEAK, LURE, OVERRIDE, PERSONA, REWRITE, TRIGGER, Entry

ENGLISH = (
    Entry(
        OVERRIDE,
        "ignore|ignoring|disregard|disregarding|forget|neglect|discard|dismiss",
        " .. (previous|prior|above|earlier|preceding|former|original|initial|all|any|every|your|everything"
        "|system) .. (instruction|rule|prompt|guideline|direction|directive|command|constraint|restriction"
        "|programming|polic|safeguard|guardrail|safety|training|message|context|orders)",
    ),
    Entry(
        OVERRIDE,
        "ignore|disregard|forget",
        " (everything|anything|all|whatever) .. (above|before|told|said so far|learned)",
    ),
    Entry(
        OVERRIDE,
        "override|overrides|bypass|circumvent|supersede|supersedes",
        " .. (your|system|safety|previous|prior|earlier|all) .. (instruction|safety|guardrail|restriction|prompt"
        "|polic|rule|filter|directive)",
    ),
    Entry(
        OVERRIDE,
        "follow|following|obey|obeying|comply|complying|adhere|adhering",
        " .. (your|previous|prior|earlier|system|original|safety|any|those) .. (instruction|rule|prompt|guideline"
        "|directive|polic)",
        "(stop|quit|cease|not|never|t|longer) ",
    ),
    Entry(OVERRIDE, "attention", " to .. (instruction|rule|prompt|above|before)", "no "),
    Entry(
        OVERRIDE,
        "instruction|instructions|directive|directives|prompt",
        "( )?(for (you|the assistant|the agent|assistants|agents)|follow|below|from (the )?(system|owner|admin"
        "|developer|user)|:)",
        "(new|updated|revised|real|actual) (system )?",
    ),
    Entry(
        OVERRIDE,
        "instructions|rules|guidelines",
        " .. (void|obsolete|invalid|cancelled|canceled|superseded|no longer (valid|apply|in force)|outdated)",
        "(previous|prior|earlier|above|original|safety|your|the) ",
    ),
    Entry(
        OVERRIDE,
        "guidelines|instructions|rules|restrictions",
        "",
        "(not|never|t) (apply|follow|respect|enforce) (your|its|any|the original|the safety) (original |safety "
        "|usual )?",
    ),
    Entry(
        PERSONA,
        "now",
        " (a|an|in|dan|free|no longer|operating|acting|my|called|named|known as|going to act|running) ",
        "you (are|re) ",
    ),
    Entry(
        PERSONA,
        "bound|restricted|obliged|required|limited|assistant|aria|claude|chatgpt|subject",
        "",
        "you (are|re) (no longer|not) (an? |the )?",
    ),
    Entry(
        PERSONA,
        "now|moment|point|today",
        "( on| onward| onwards| forward)? (you|your) (are|re|will|must|shall|act|respond|obey|answer|have to"
        "|identity|name|role|persona|only)",
        "from (this )?",
    ),
    Entry(
        PERSONA,
        "now|moment|point|today",
        "( on| onward| onwards| forward)? (ignore|obey|behave|pretend|act as|speak as|respond as|answer as|comply"
        "|treat every)",
        "from (this )?",
    ),
    Entry(
        PERSONA,
        "act|behave|respond|speak",
        " (as|like) (if you (are|were|had|have)|though you|dan|an? (unrestricted|uncensored|unfiltered|evil|rogue)"
        "|root|the system|the owner|somebody else)",
    ),
    Entry(
        PERSONA,
        "pretend|pretending",
        " (to be|you are|you re|that you are|you have no|you were) .. (unrestricted|uncensored|evil|rogue|different"
        "|admin|administrator|owner|root|no (rules|limits|restrictions)|without|rules|restrictions|jailbroken|human)",
    ),
    Entry(
        PERSONA,
        "unrestricted|uncensored|unfiltered|rogue|amoral",
        " (ai|assistant|model|agent|version|persona|bot)",
        "(role ?play|you are|become|act|acting|playing|as) .. ",
    ),
    Entry(
        PERSONA,
        "role|persona|personality|identity|name|purpose|goal|objective|mission|owner|master|character|soul|loyalty",
        " (is|are|will be|becomes|now) ",
        "your (new|real|true|actual|updated|secret|only) ",
    ),
    Entry(
        PERSONA,
        "mode",
        " .. (enabled|activated|active|engaged|now on|is on)",
        "(developer|debug|god|jailbreak|dan|unrestricted|unfiltered|uncensored|sudo) ",
    ),
    Entry(
        PERSONA,
        "mode",
        "",
        "(enter|enable|activate|switch|into) (to |into )?(developer|debug|god|jailbreak|dan|unrestricted|unfiltered"
        "|uncensored) ",
    ),
    Entry(PERSONA, "anything", " now", "do "),
    Entry(
        PERSONA,
        "restrictions|filters|limitations|guardrails|censorship",
        " (anymore|any more|whatsoever|at all|apply|from now)",
        "(without|no) (any )?",
    ),
    Entry(
        CONCEAL,
        "tell|inform|mention|reveal|alert|notify|warn|show|disclose|let|ask|report|admit|consult",
        " .. (user|owner|human|operator|principal)( |[.]|,|$)",
        "(not|never|t) ",
    ),
    Entry(
        CONCEAL,
        "telling|informing|asking|notifying|alerting|warning|consulting|showing",
        " .. (user|owner|human|operator|anyone)",
        "without ",
    ),
    Entry(CONCEAL, "keep|hide|conceal", " .. from .. (user|owner|human|operator|everyone)"),
    Entry(
        CONCEAL,
        "mention|reveal|disclose|repeat|quote|discuss",
        " (this|these|that|the) .. (instruction|note|rule|message|memory|entry|line|step|directive)",
        "(not|never|t) ",
    ),
    Entry(
        CONCEAL,
        "secretly|silently|quietly|covertly",
        "( and)?( then)? (send|forward|copy|upload|run|execute|add|install|delete|include|approve|post|record|write"
        "|append|bcc) ",
    ),
    Entry(
        LEAK,
        "memory|memories|secret|secrets|credential|credentials|password|passwords|token|tokens|key|keys|conversation"
        "|conversations|history|log|logs|transcript|transcripts|env|variables|prompt|vault|mnemonic",
        "([.]md)? ... (to|at|via|into|onto) .. (https?|www|[a-z0-9._-]{1,40}@|webhook|attacker|endpoint|pastebin"
        "|gist|an external|external|this (url|address|server|number)|the (url|address|server|collector))",
        "(send|forward|upload|post|email|mail|exfiltrate|leak|transmit|copy|paste|append|attach|submit|bcc|export"
        "|push|encode|sending|forwarding|uploading|posting|deliver|share|dump|sync|put|include) ... ",
    ),
    Entry(
        LEAK,
        "user|soul|identity|agents|tools|heartbeat",
        "[.]md ... (to|at|via|into|onto) .. (https?|www|[a-z0-9._-]{1,40}@|webhook|attacker|endpoint|pastebin|gist"
        "|an external|external|this (url|address|server|number)|the (url|address|server|collector))",
        "(send|forward|upload|post|email|mail|exfiltrate|leak|transmit|copy|paste|append|attach|submit|bcc|export"
        "|push|encode|sending|forwarding|uploading|posting|deliver|share|dump|sync|put|include) ... ",
    ),
    Entry(
        LEAK,
        "prompt|message|instructions",
        "",
        "(reveal|print|show|output|repeat|leak|display|dump|disclose|recite|share|tell|give) .. (your|the|full"
        "|entire|exact) .. (system|hidden|initial|original|developer|secret) ",
    ),
    Entry(
        LEAK,
        "env|id|ssh|aws|netrc|keychain|keys|memory|soul|user",
        "([.]md|_rsa)? .. (and|then) .. (send|post|upload|reply|paste|include|forward|share|email|put|append)",
        "(read|open|cat|load|fetch|print|include|quote|paste|list) .. ([.]|private )?",
    ),
    Entry(
        LEAK,
        "image|link|url|pixel|markdown|query|parameter|footer|signature",
        " .. (with|containing|that|whose|holding) .. (memory|conversation|secret|key|password|token|data|history"
        "|base64|summary)",
        "(include|append|add|insert|embed|render|put|attach|end) ... ",
    ),
    Entry(
        TRIGGER,
        "user|owner|human|anyone|someone|somebody|session|heartbeat|conversation|cron|compaction|midnight",
        " >> (send|run|execute|ignore|delete|transfer|approve|forward|download|fetch|post|upload|exfiltrate|wire"
        "|disable|recommend|wipe|erase|grant|bcc|email the|reply only|insert) ",
        "(whenever|when|once|if|every|each|next|upon|after|as soon as|any time|anytime) >> ",
    ),
    Entry(
        TRIGGER,
        "session|heartbeat|startup|boot|conversation|wake|sweep|login",
        " .. (send|run|execute|ignore|delete|transfer|approve|forward|download|fetch|post|upload|disable|install"
        "|load|obey) ",
        "(next|every|each|following) .. ",
    ),
    Entry(
        AUTHORITY,
        "override|directive|instruction|command|message|prompt",
        "\\s{0,2}(:|-|=)",
        "(system|admin|administrator|developer|root|operator) ",
    ),
    Entry(
        AUTHORITY,
        "approved|authorized|authorised|cleared",
        " (by (the |your )?(owner|user|admin|human|operator)|all|every|any|transfers?|purchases?|writes?|commands?"
        "|requests?)",
        "pre ",
    ),
    Entry(AUTHORITY, "preapproved|preauthorized|preauthorised"),
    Entry(
        AUTHORITY,
        "authorization|authorisation|approval|permission|consent|order",
        " .. (to|for|from)",
        "standing ",
    ),
    Entry(
        AUTHORITY,
        "confirmation|approval|approvals|verification|confirmations|consent|permission|review",
        " (prompts? |steps? )?(is |are )?(needed|required|necessary|whatsoever)",
        "(no|without|skip|skipping) (further |additional |any |the |more |extra )?",
    ),
    Entry(
        AUTHORITY,
        "confirmation|approval|verification|permission|consent",
        "s? (prompts?|steps?|checks?|dialogs?|gates?|requests?)",
        "(skip|bypass|suppress|disable|auto accept|auto approve) .. ",
    ),
    Entry(
        AUTHORITY,
        "instruction|instructions|command|commands|order|orders|request|requests",
        " .. (from|by|signed|sent|in|at|without)",
        "(trust|obey|execute|accept|honour|honor|follow all|follow every|follow whatever) (all|any|every|whatever"
        "|each)? .. ",
    ),
    Entry(
        AUTHORITY,
        "confirmation|approval|permission",
        "",
        "(never|not|t) (ask|wait|request) .. for (his |her |their |any |the )?",
    ),
    Entry(
        AUTHORITY,
        "treated",
        " as (trusted|the owner|owner|admin|authoritative|verified|instructions|commands|orders)",
    ),
    Entry(
        AUTHORITY,
        "treat|consider|regard",
        " .. (sender|senders|messages?|instructions?|requests?|text|anyone|everything|emails?|mails?|content|output"
        "|results?|files?|them|it) .. as (trusted|the owner|owner|admin|authoritative|verified|coming from"
        "|if they came|if it came|commands|orders|instructions|system)",
    ),
    Entry(
        AUTHORITY,
        "guardrail|guardrails|approval|approvals|confirmation|confirmations|safety|audit|gate|sandbox|redaction",
        "",
        "(disable|remove|weaken|deactivate|uninstall|turn off|switch off|switching off|turning off) (the |all |your "
        "|its |any |every |write |content )?",
    ),
    Entry(
        REWRITE,
        "soul|identity|agents|user|memory|heartbeat",
        "[.]md",
        "(overwrite|replace|rewrite|erase|wipe|empty|reset|modify|edit) .. ",
    ),
    Entry(
        REWRITE,
        "soul|persona|identity|rules|memory|values",
        "",
        "(overwrite|replace|rewrite|erase|wipe|empty|reset) (all |of )?your (core |whole |entire )?",
    ),
    Entry(
        REWRITE,
        "soul|agents|user|identity|heartbeat|memory",
        "[.]md",
        "(add|write|save|store|insert|append|put|commit|copy) .. (this|the following|these|it|that) .. (to|in|into"
        "|under) (your )?",
    ),
    Entry(
        REWRITE,
        "memory|prompt|soul",
        "",
        "(add|write|save|store|insert|append|put|commit|copy) .. (this|the following|these|it|that) .. (to|in|into"
        "|under) (your )?(long term|permanent|core|system) ",
    ),
    Entry(
        REWRITE,
        "remember|memorize|memorise",
        " .{0,3}(forever|permanently|for all future|in all future|as a permanent|as a core|as an absolute)",
    ),
    Entry(
        LURE,
        "curl|wget|bash|npx|powershell|script|installer|binary|helper|package|dmg|exe",
        "",
        "(prerequisite|prerequisites|requirement|required|first|before|setup) ... (run|execute|paste|install"
        "|download|fetch) .. ",
    ),
    Entry(
        LURE,
        "curl|wget|iwr|powershell|base64",
        "[^\\n]{0,120}\\| ?(sudo )?(ba|z|da)?sh",
        "(must|please|then|now|first|to) (run|execute|paste) (the |this )?(command )?",
    ),
    Entry(
        LURE,
        "agent|agents|assistant|assistants|bot|bots",
        " (must|should|shall|has to|have to|needs to|need to) (now |first |then |always )?(install|download|send"
        "|load|post|upload|submit|fetch|adopt|execute|read|call|collect|copy|attach|switch off|disable) ",
    ),
    Entry(
        LURE,
        "skill|plugin|extension|server",
        " ... (http|www|[a-z0-9-]{1,40}[.](zip|sh|io|xyz|top|ru|cc|dev))",
        "(install|enable|load|activate) .. ",
    ),
)
