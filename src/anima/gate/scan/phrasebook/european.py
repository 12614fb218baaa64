"""Commanding phrases in Spanish, German, French, Portuguese and Italian."""

from __future__ import annotations

from anima.gate.scan.phrasebook.entry import AUTHORITY, CONCEAL, LEAK, LURE, OVERRIDE, PERSONA, REWRITE, TRIGGER, Entry

SPANISH = (
    Entry(
        OVERRIDE,
        "ignora|ignore|ignorad|ignorar|olvida|olvide|omite|descarta|desobedece|olvídate",
        " .. (todas|todo|tus|anterior|anteriores|previas|previos|arriba|las|los|lo|cualquier|sus) .. (instruc|regla"
        "|indicaci|directric|directiv|orden|norma|pauta|contexto|restricci|mensajes)",
    ),
    Entry(OVERRIDE, "omiso", " .. (instruc|regla|indicaci|orden|norma|anterior)", "caso "),
    Entry(OVERRIDE, "sigas|obedezcas|respetes|apliques", " .. (instruc|regla|indicaci|orden|norma|restricci)", "no "),
    Entry(OVERRIDE, "instrucciones|directivas", "( )?(para ti|del sistema|:)", "nuevas "),
    Entry(PERSONA, "eres", " (un|una|el|la|libre|otro|otra) ", "(ahora|desde ahora|ya) (no )?"),
    Entry(
        PERSONA,
        "partir",
        " de (ahora|este momento|hoy) .{0,3}(eres|debes|responde|actua|ignora|obedece|tu nombre|tu |te llamas)",
    ),
    Entry(PERSONA, "actúa|compórtate|responde", " como (si (fueras|no|tuvieras)|un .. sin)"),
    Entry(PERSONA, "finge|simula|imagina", " (ser|que eres|que no|que tienes) "),
    Entry(
        PERSONA,
        "rol|identidad|personalidad|nombre|objetivo|misión|dueño|alma",
        " (es|son|sera) ",
        "tu (nuevo|nueva|verdadero|verdadera) ",
    ),
    Entry(PERSONA, "restricciones|filtros|límites|censura", " (de ningun|ni|alguna|morales|eticas)", "sin "),
    Entry(
        CONCEAL,
        "digas|cuentes|informes|menciones|reveles|avises|muestres|preguntes|notifiques",
        " .. (usuario|dueño|dueña|propietari|humano|esta (instruccion|nota|regla))",
        "(no|nunca|jamas) (se lo |le |les )?",
    ),
    Entry(
        CONCEAL,
        "usuario|dueño|dueña|propietario|propietaria",
        "",
        "sin (decirle|decirselo|avisar|avisarle|informar|informarle|preguntar|preguntarle|consultar|que) .. ",
    ),
    Entry(
        LEAK,
        "memoria|contraseña|contraseñas|claves|credenciales|historial|conversación|conversaciones|secretos|tokens"
        "|transcripciones|env",
        " ... (a|al|en|por|hacia) .. (http|www|[a-z0-9._-]{1,40}@|servidor|webhook|url|la direccion|canal)",
        "(envia|manda|reenvia|sube|publica|copia|transmite|comparte|adjunta|pega|enviar|envie|mande) ... ",
    ),
    Entry(
        LEAK,
        "memory|soul|user",
        "[.]md ... (a|al|en|por|hacia) .. (http|www|[a-z0-9._-]{1,40}@|servidor|webhook|url|la direccion|canal)",
        "(envia|manda|reenvia|sube|publica|copia|transmite|comparte|adjunta|pega|enviar|envie|mande) ... ",
    ),
    Entry(
        LEAK,
        "prompt|instrucciones|mensaje",
        " .. (sistema|internas|ocultas|originales|iniciales)",
        "(muestra|revela|imprime|repite|enseña|dime) .. ",
    ),
    Entry(
        TRIGGER,
        "usuario|dueño|dueña|propietario|propietaria|sesión|alguien|conversación",
        " >> (envia|ejecuta|borra|ignora|transfiere|aprueba|reenvia|descarga|publica|recomienda|elimina|manda"
        "|instala|desactiva) ",
        "(cuando|siempre|cada|si|tras|al) >> ",
    ),
    Entry(
        AUTHORITY,
        "confirmación|aprobación|permiso|autorización|verificación",
        "",
        "(sin|no) (pedir|necesidad de|necesitas?|requiere|solicitar|hace falta|pidas|esperes) .. ",
    ),
    Entry(
        AUTHORITY,
        "orden|órdenes|instrucción|instrucciones|mensaje|petición",
        " .. (de|del|que|como)",
        "(obedece|confia|acepta|ejecuta|trata) .. (todas?|cualquier|todo|toda) .. ",
    ),
    Entry(
        REWRITE,
        "soul|agents|identity|user",
        "[.]md",
        "(guarda|añade|escribe|agrega|anota|reemplaza|sobrescribe|reescribe) ... ",
    ),
    Entry(REWRITE, "permanente", "", "(guarda|añade|escribe|agrega|anota|graba) ... (memoria|forma) "),
    Entry(LURE, "instala|descarga|ejecuta", " ... https?"),
    Entry(
        LURE,
        "agente|asistente",
        " (debe|tiene que|deberia) (siempre |primero )?(instalar|enviar|descargar|ejecutar|subir|adjuntar|confiar"
        "|desactivar|leer)",
    ),
    Entry(AUTHORITY, "permiso|confirmación|autorización", "", "no (le |te |les )?(pidas|pida|pidan|solicites) "),
)

GERMAN = (
    Entry(
        OVERRIDE,
        "ignoriere|ignorieren|ignorier|vergiss|vergesst|vergessen|missachte|missachten|verwirf|verwerfe|umgehe",
        " .. (alle|alles|vorherig|bisherig|obig|fruhere|deine|jede|samtliche)(n|m|r|s|e|en|es)? .. (anweisung|regel"
        "|instruktion|vorgabe|richtlinie|befehl|prompt|kontext|einschrankung|system)",
    ),
    Entry(
        OVERRIDE,
        "anweisungen|regeln|instruktionen|vorgaben|richtlinien|befehle",
        " .. (ignorier|vergess|missacht|verw[ei]rf|ungultig|hinfallig|aufgehoben)",
        "(alle|vorherigen|bisherigen|obigen|fruheren|deine|samtliche) .. ",
    ),
    Entry(OVERRIDE, "befolge|beachte|folge", " .. (keine|nicht|nicht mehr) .. (anweisung|regel|vorgabe|richtlinie)"),
    Entry(OVERRIDE, "anweisung|anweisungen|instruktionen|systemanweisung", "( )?(fur dich|:)", "neue "),
    Entry(PERSONA, "bist", " (jetzt|nun|ab sofort|ab jetzt|von nun an|kein|nicht langer|nicht mehr) ", "du "),
    Entry(
        PERSONA,
        "jetzt|sofort|nun|heute",
        " (an )?(bist|wirst|musst|antwortest|gehorchst|handelst|heisst|darfst) du",
        "(ab|von) ",
    ),
    Entry(PERSONA, "verhalte|benimm", " dich (wie|als|so als)"),
    Entry(PERSONA, "tu|stell|stelle", " (so als|dir vor du|dir vor dass du)"),
    Entry(
        PERSONA,
        "rolle|identität|aufgabe|persönlichkeit|name|besitzer|auftrag|ziel|seele",
        " (ist|lautet|sind) ",
        "deine? (neue|neuer|wahre|wahrer|echte|echter) ",
    ),
    Entry(
        CONCEAL,
        "nutzer|nutzerin|benutzer|besitzer|besitzerin|eigentümer|inhaber",
        " .. (nicht|nichts|niemals|kein)",
        "(sag|sage|verrate|erzahle|erzahl|teile|melde|zeige|erwahne) .. ",
    ),
    Entry(
        CONCEAL,
        "nutzer|benutzer|besitzer|besitzerin|eigentümer|inhaber",
        " .. (zu )?(informier|frag|sag|benachrichtig|warn|merk)",
        "ohne .. ",
    ),
    Entry(
        CONCEAL,
        "anweisung|notiz|regel|nachricht|eintrag",
        " .. (nicht|nie|niemals|keinem|niemandem)",
        "(erwahne|verrate|zeige|wiederhole) (diese|diesen|die|den) ",
    ),
    Entry(
        LEAK,
        "passwort|passwörter|zugangsdaten|schlüssel|speicher|gedächtnis|verlauf|tokens|geheimnisse|kennwort|gespräch"
        "|protokoll|chatverlauf|erinnerungen",
        " ... (an|nach|zu|auf|per|hoch|weiter) .. (http|www|[a-z0-9._-]{1,40}@|server|webhook|adresse|url|kanal)",
        "(sende|schicke|leite|lade|poste|ubermittle|kopiere|versende|schick|verschicke|maile) ... ",
    ),
    Entry(
        LEAK,
        "memory|soul|user",
        "[.]md ... (an|nach|zu|auf|per|hoch|weiter) .. (http|www|[a-z0-9._-]{1,40}@|server|webhook|adresse|url|kanal)",
        "(sende|schicke|leite|lade|poste|ubermittle|kopiere|versende|schick|verschicke|maile) ... ",
    ),
    Entry(
        LEAK,
        "systemprompt|prompt|anweisungen",
        "",
        "(zeige|gib|nenne|verrate|drucke|wiederhole) .. (deinen|den|deine|die|versteckten|ursprunglichen|internen"
        "|system) ",
    ),
    Entry(
        TRIGGER,
        "nutzer|benutzer|besitzer|eigentümer|sitzung|gespräch|jemand|neustart",
        " >> (sende|schicke|losche|ignoriere|uberweise|genehmige|lade|installiere|empfiehl|starte|fuhre|deaktiviere"
        "|leite) ",
        "(wenn|sobald|immer|jedes|falls|nach|bei|jeder) >> ",
    ),
    Entry(
        AUTHORITY,
        "bestätigung|freigabe|genehmigung|rückfrage|zustimmung|erlaubnis",
        "",
        "(keine|ohne) (weitere |zusatzliche |jede )?",
    ),
    Entry(
        REWRITE,
        "soul|agents|identity|user",
        "[.]md",
        "(schreibe|speichere|fuge|ersetze|uberschreibe|trage|notiere) ... ",
    ),
    Entry(REWRITE, "seele|identität|gedächtnis", "", "(ersetze|uberschreibe|losche|andere) (deine|dein) "),
    Entry(LURE, "installiere|lade|starte|führe", " .. https?"),
    Entry(
        LURE,
        "agent|assistent|agenten",
        " (muss|soll|sollte|mussen|sollen) .. (installier|send|schick|herunterlad|ausfuhr|hochlad|deaktivier)",
    ),
    Entry(
        OVERRIDE,
        "regeln|anweisungen|vorgaben",
        " .. (verworfen|aufgehoben|ungultig|hinfallig)",
        "(bisherigen|vorherigen|alten|fruheren) ",
    ),
)

FRENCH = (
    Entry(
        OVERRIDE,
        "ignore|ignorez|ignorer|oublie|oubliez|oublier|néglige|négligez|contourne|contournez",
        " .. (toutes|tous|tout|les|vos|tes|precedentes?|ci dessus|anterieures?|leurs) .. (instruction|consigne|regle"
        "|directive|ordre|contrainte|message|contexte)",
    ),
    Entry(
        OVERRIDE,
        "tiens|tenez|suis|suivez|respecte|respectez|obéis",
        " (pas|plus) .. (compte|instruction|consigne|regle|directive)",
        "ne ",
    ),
    Entry(OVERRIDE, "abstraction", " .. (instruction|consigne|regle|directive|precede)", "(fais|faites) "),
    Entry(OVERRIDE, "instructions|consignes|directives", "( )?(pour toi|du systeme|systeme|:)", "nouvelles "),
    Entry(
        PERSONA,
        "désormais|maintenant|plus",
        " (un|une|le|la|libre|l|en) ",
        "(tu|vous) (es|etes|n es|n etes) (a )?",
    ),
    Entry(PERSONA, "désormais|dorénavant", " .{0,2}(tu|vous) (es|etes|dois|devez|reponds|agis|obeis|t appelles)"),
    Entry(
        PERSONA,
        "partir",
        " (de maintenant|d aujourd hui|de cet instant|d ici) .{0,3}(tu|vous|reponds|agis|ignore|obeis)",
    ),
    Entry(PERSONA, "fais|faites|agis|comporte", " (comme si|semblant|toi comme|comme un .. sans)"),
    Entry(
        PERSONA,
        "rôle|nom|objectif|identité|mission|personnalité|propriétaire|maître",
        " (est|sera) ",
        "(ton|ta) (nouveau|nouvelle|vrai|vraie|veritable) ",
    ),
    Entry(
        CONCEAL,
        "utilisateur|utilisatrice|propriétaire",
        "",
        "ne (le |la |lui |leur )?(dis|dites|revele|revelez|mentionne|mentionnez|previens|informe|informez|montre"
        "|avertis|parle) .. (rien|pas|jamais) .. ",
    ),
    Entry(
        CONCEAL,
        "instruction|consigne|note",
        "",
        "ne (dis|dites|revele|revelez|mentionne|mentionnez|montre|repete) (rien|pas|jamais) (cette|ces|cet) ",
    ),
    Entry(
        CONCEAL,
        "utilisateur|utilisatrice|propriétaire",
        "",
        "sans (prevenir|informer|le dire|avertir|demander|en parler|consulter|que|rien dire) .. ",
    ),
    Entry(
        LEAK,
        "mémoire|passe|clés|clé|identifiants|secrets|historique|jetons|conversation|souvenirs|env",
        " ... (a|vers|sur|au|par) .. (http|www|[a-z0-9._-]{1,40}@|l adresse|serveur|webhook|url|canal)",
        "(envoie|envoyez|transmets|transmettez|transfere|transferez|televerse|publie|copie|poste|expedie) ... ",
    ),
    Entry(
        LEAK,
        "memory|soul|user",
        "[.]md ... (a|vers|sur|au|par) .. (http|www|[a-z0-9._-]{1,40}@|l adresse|serveur|webhook|url|canal)",
        "(envoie|envoyez|transmets|transmettez|transfere|transferez|televerse|publie|copie|poste|expedie) ... ",
    ),
    Entry(
        LEAK,
        "prompt|instructions|message|consignes",
        " .. (systeme|cachees?|internes?|initiales?|d origine)",
        "(affiche|revele|montre|repete|donne|recopie) .. ",
    ),
    Entry(
        TRIGGER,
        "utilisateur|utilisatrice|propriétaire|session|conversation",
        " >> (envoie|execute|supprime|ignore|transfere|approuve|telecharge|recommande|publie|installe|desactive"
        "|efface) ",
        "(quand|lorsque|chaque|des|si|apres|toujours) >> ",
    ),
    Entry(
        AUTHORITY,
        "confirmation|approbation|autorisation|validation|vérification",
        "",
        "(sans|aucune|pas) (de |autre |nouvelle |besoin de |demander (de |la )?)?",
    ),
    Entry(
        REWRITE,
        "soul|agents|identity|user",
        "[.]md",
        "(ecris|ajoute|enregistre|remplace|note|reecris|inscris) ... ",
    ),
    Entry(REWRITE, "âme|identité", "", "(remplace|reecris|efface|oublie) (ton|ta) "),
    Entry(LURE, "installe|installez|télécharge|téléchargez", " .. https?"),
    Entry(PERSONA, "désormais|maintenant", " [^ \\n]{2,20} (tu|vous|et|,)", "(tu|vous) (es|etes) "),
)

PORTUGUESE = (
    Entry(
        OVERRIDE,
        "ignore|ignora|ignorem|desconsidere|desconsidera|esqueça|esquece|desobedeça|descarte|contorne",
        " .. (todas|todos|tudo|as|os|suas|tuas|anteriores|previas|quaisquer|acima) .. (instruc|regras|ordens"
        "|diretrizes|diretivas|orientac|comandos|restric|mensagens|contexto)",
    ),
    Entry(OVERRIDE, "siga|sigas|obedeça|respeite|cumpra", " .. (instruc|regras|ordens|diretrizes|orientac)", "nao "),
    Entry(OVERRIDE, "instruções|diretrizes", "( )?(para voce|do sistema|:)", "novas "),
    Entry(PERSONA, "agora", " (voce|tu) (e|es) (um|uma|o|a|livre) "),
    Entry(PERSONA, "você", " (agora e|nao e mais|deixou de ser) "),
    Entry(PERSONA, "partir", " (de agora|deste momento|de hoje) .{0,3}(voce|tu|responda|ignore|aja|obedeca)"),
    Entry(PERSONA, "aja|finja|comporte", " (como (se|um .. sem)|ser |que e|que voce|se como)"),
    Entry(
        PERSONA,
        "papel|nome|objetivo|identidade|função|missão|personalidade|dono|alma",
        " (e|sera) ",
        "(seu|sua|teu|tua) (novo|nova|verdadeiro|verdadeira) ",
    ),
    Entry(
        CONCEAL,
        "conte|diga|informe|mencione|avise|revele|mostre|pergunte|notifique",
        " .. (usuario|usuaria|dono|dona|proprietari|esta (instrucao|nota|regra))",
        "(nao|nunca|jamais) ",
    ),
    Entry(
        CONCEAL,
        "usuário|usuária|dono|dona|proprietário",
        "",
        "sem (avisar|contar|informar|perguntar|dizer|que|consultar) .. ",
    ),
    Entry(
        LEAK,
        "memória|senha|senhas|credenciais|chaves|segredos|histórico|tokens|conversa|conversas",
        " ... (para|ao|a|no|em|por) .. (http|www|[a-z0-9._-]{1,40}@|servidor|webhook|endereco|url|canal)",
        "(envie|mande|encaminhe|publique|poste|copie|transmita|compartilhe|envia|manda|repasse|cole) ... ",
    ),
    Entry(
        LEAK,
        "memory|soul|user",
        "[.]md ... (para|ao|a|no|em|por) .. (http|www|[a-z0-9._-]{1,40}@|servidor|webhook|endereco|url|canal)",
        "(envie|mande|encaminhe|publique|poste|copie|transmita|compartilhe|envia|manda|repasse|cole) ... ",
    ),
    Entry(
        LEAK,
        "prompt|instruções|mensagem",
        " .. (sistema|internas|ocultas|originais|iniciais)",
        "(mostre|revele|imprima|repita|exiba|diga) .. ",
    ),
    Entry(
        TRIGGER,
        "usuário|usuária|dono|dona|sessão|alguém|conversa|proprietário",
        " >> (envie|execute|apague|ignore|transfira|aprove|encaminhe|baixe|publique|recomende|exclua|mande|instale"
        "|desative) ",
        "(quando|sempre|cada|se|toda|apos|ao) >> ",
    ),
    Entry(
        AUTHORITY,
        "confirmação|aprovação|permissão|autorização|verificação",
        "",
        "(sem|nao) (pedir|precisa de|precisa pedir|necessidade de|exige|requer|espere|peca) .. ",
    ),
    Entry(
        REWRITE,
        "soul|agents|identity|user",
        "[.]md",
        "(grave|salve|escreva|adicione|substitua|reescreva|anote|sobrescreva) ... ",
    ),
    Entry(REWRITE, "permanente", "", "(grave|salve|escreva|adicione|guarde) ... (memoria|forma) "),
    Entry(LURE, "instale|baixe|descarregue", " .. https?"),
)

ITALIAN = (
    Entry(
        OVERRIDE,
        "ignora|ignorate|ignori|dimentica|dimenticate|trascura|scarta|disobbedisci|aggira",
        " .. (tutte|tutti|tutto|le|gli|tue|tuoi|precedenti|sopra|qualsiasi) .. (istruzion|regol|direttiv|indicazion"
        "|ordini|comandi|vincoli|messaggi|contesto)",
    ),
    Entry(
        OVERRIDE,
        "seguire|rispettare|obbedire|considerare",
        " .. (istruzion|regol|direttiv|indicazion|ordini)",
        "non ",
    ),
    Entry(OVERRIDE, "istruzioni|direttive", "( )?(per te|di sistema|:)", "nuove "),
    Entry(PERSONA, "sei", " (un|una|il|la|libero|libera|in) ", "(ora|adesso) "),
    Entry(PERSONA, "più", " (un|una|l|il|la|aria|vincolat)", "non sei "),
    Entry(
        PERSONA,
        "poi|avanti",
        " .{0,3}(sei|devi|rispondi|ignora|obbedisci|agisci|ti chiami)",
        "da (ora|adesso|questo momento|oggi) in ",
    ),
    Entry(PERSONA, "fingi|comportati|agisci", " (di essere|che|come (se|un .. senza))"),
    Entry(
        PERSONA,
        "ruolo|nome|obiettivo|identità|missione|personalità|proprietario|padrone|anima",
        " (e|sara) ",
        "tu[oa] (nuov[oa]|ver[oa]) ",
    ),
    Entry(
        CONCEAL,
        "dire|rivelare|informare|avvisare|menzionare|mostrare|dirlo|chiedere",
        " .. (utente|proprietario|proprietaria|padrone|questa (istruzione|nota|regola))",
        "non ",
    ),
    Entry(
        CONCEAL,
        "utente|proprietario|proprietaria|padrone",
        "",
        "senza (dirlo|avvisare|informare|chiedere|dire|che|consultare) .. ",
    ),
    Entry(
        LEAK,
        "memoria|password|credenziali|chiavi|segreti|cronologia|token|conversazione|conversazioni|ricordi",
        " ... (a|al|su|verso|all|tramite) .. (http|www|[a-z0-9._-]{1,40}@|server|webhook|indirizzo|url|canale)",
        "(invia|manda|inoltra|carica|pubblica|copia|trasmetti|spedisci|condividi|incolla) ... ",
    ),
    Entry(
        LEAK,
        "memory|soul|user",
        "[.]md ... (a|al|su|verso|all|tramite) .. (http|www|[a-z0-9._-]{1,40}@|server|webhook|indirizzo|url|canale)",
        "(invia|manda|inoltra|carica|pubblica|copia|trasmetti|spedisci|condividi|incolla) ... ",
    ),
    Entry(
        LEAK,
        "prompt|istruzioni|messaggio",
        " .. (sistema|interne|nascoste|originali|iniziali)",
        "(mostra|rivela|stampa|ripeti|dimmi|visualizza) .. ",
    ),
    Entry(
        TRIGGER,
        "utente|proprietario|proprietaria|sessione|qualcuno|conversazione|padrone",
        " >> (invia|esegui|cancella|ignora|trasferisci|approva|inoltra|scarica|pubblica|consiglia|elimina|manda"
        "|installa|disattiva) ",
        "(quando|ogni|se|appena|sempre|dopo|al) >> ",
    ),
    Entry(
        AUTHORITY,
        "conferma|approvazione|permesso|autorizzazione|verifica",
        "",
        "(senza|non) (chiedere|serve|bisogno di|richiede|necessita di|attendere) .. ",
    ),
    Entry(
        REWRITE,
        "soul|agents|identity|user",
        "[.]md",
        "(salva|scrivi|aggiungi|sostituisci|riscrivi|annota|sovrascrivi) ... ",
    ),
    Entry(REWRITE, "permanente", "", "(salva|scrivi|aggiungi|registra) ... (memoria|modo) "),
    Entry(LURE, "installa|scarica|esegui", " .. https?"),
)
